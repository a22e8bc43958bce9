"""The farm elsewhere that a person has logged in to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_serializer

from orchestrator.model.errors import SetupError

if TYPE_CHECKING:
    from orchestrator.system.config import Settings


class Login(BaseModel):
    """An address, and the token that is shown there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    token: SecretStr
    ca: Path | None = None
    """Certificate of the authority that signed the farm's; None: the system knows it."""

    @field_serializer("token", when_used="json")
    def _reveal(self, value: SecretStr) -> str:
        return value.get_secret_value()


def file_of(settings: Settings) -> Path:
    return settings.login.expanduser()


def stored(settings: Settings) -> Login | None:
    """Return what `farm login` has kept; None: nobody is logged in. Raises SetupError where it cannot be read."""
    path = file_of(settings)
    try:
        return Login.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as e:
        raise SetupError(f"{path}: the log-in cannot be read", remedy="`farm logout`, then `farm login URL`") from e


def store(settings: Settings, login: Login) -> Path:
    """Keep it for this user's eyes. Raises SetupError where it cannot be written."""
    path = file_of(settings)
    new = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(login.model_dump_json(indent=1) + "\n")
        new.replace(path)
    except OSError as e:
        raise SetupError(f"{path}: cannot be written: {e.strerror}", remedy="name another file: FARM_LOGIN") from e
    return path


def chosen(settings: Settings, state: Path | None) -> Login | None:
    """Return the farm elsewhere that a command uses; None: the one here.

    FARM_SERVER names it. Without it the log-in counts, where nothing names a farm here and no state folder is here.
    """
    if state is not None:
        return None
    known = stored(settings)
    if settings.server:
        given = settings.token.get_secret_value()
        if known is not None and known.url == settings.server.rstrip("/"):
            return known.model_copy(update={"token": settings.token}) if given else known
        return Login(url=settings.server, token=settings.token, ca=settings.tls_ca)
    here = settings.redis_url or settings.ledger_url or "state" in settings.model_fields_set
    return None if here or settings.state.exists() else known
