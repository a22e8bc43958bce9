"""The file that lets a machine become a host of a farm: `farm host add` writes it and `farm up --join` reads it."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_serializer

from orchestrator.coordination.access import user_of
from orchestrator.coordination.client import connect, shown_url
from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.config import HOST_NAME, Settings

URLS = ("redis://", "rediss://")
AGAIN_S = 5.0
UNREACHED = "check that `farm up --listen` runs there, and that this machine reaches its port"


class Join(BaseModel):
    """The host's name, the way to its farm, and the secret that both know. Readable by its owner only."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    host: str = Field(pattern=HOST_NAME)
    redis_url: str
    files_url: str
    secret: SecretStr
    ca: str
    """Certificate of the farm's authority, PEM."""

    @field_serializer("secret", when_used="json")
    def _reveal(self, value: SecretStr) -> str:
        return value.get_secret_value()


def new_secret() -> tuple[SecretStr, str]:
    """A secret, and its SHA-256, which is all that the farm keeps: a random number of 256 bits needs no slower hash."""
    secret = secrets.token_urlsafe(32)
    return SecretStr(secret), hashlib.sha256(secret.encode()).hexdigest()


def write(path: Path, join: Join) -> None:
    """Write the file for its owner's eyes only. Raises SetupError."""
    try:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(join.model_dump_json(indent=1) + "\n")
    except OSError as e:
        raise SetupError(f"{path} cannot be written: {e.strerror}", remedy="give another place with --out") from e


def joined(settings: Settings, what: str, tell: Callable[[str], None]) -> Settings:
    """Settings of a host of the farm that `what` names: a file of `farm host add`, or the URL of a Redis; then user,
    password, CA and the URL of the files come from the environment.

    Waits until that farm answers: after a power cut the host may be the first that is back. `tell` is told each new
    reason. Raises SetupError where `what` is wrong, or the farm refuses this host.
    """
    host = _by_environment(settings, what) if what.startswith(URLS) else _by_file(settings, Path(what))
    told = ""
    while True:
        try:
            connect(host).close()
            return host
        except ServiceDown as e:
            if (reason := str(e.args[0]).rstrip(".")) != told:
                tell(f"{reason}; {UNREACHED}; it is asked again every {AGAIN_S:g} s")
                told = reason
        time.sleep(AGAIN_S)


def _by_environment(settings: Settings, url: str) -> Settings:
    if not settings.files_url:
        raise SetupError(
            f"nothing says where a host of the farm at {shown_url(url)} fetches files",
            remedy="set FARM_FILES_URL (`farm up --listen` shows it as `web`), or join with a file of `farm host add`",
        )
    return settings.model_copy(update={"redis_url": url})


def _by_file(settings: Settings, path: Path) -> Settings:
    try:
        found = Join.model_validate_json(path.read_bytes())
    except OSError as e:
        raise SetupError(f"{path}: {e.strerror}", remedy="`farm host add NAME` on the farm's machine writes it") from e
    except ValidationError as e:
        remedy = "write it anew: `farm host add NAME` on the farm's machine"
        first = e.errors()[0]
        what = ": ".join(map(str, (*first["loc"], first["msg"])))  # never what stands there: it holds a secret
        raise SetupError(f"{path} is no file of `farm host add`: {what}", remedy=remedy) from e
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca = (settings.state / "farm-ca.crt").absolute()
    ca.write_text(found.ca)
    return settings.model_copy(
        update={
            "host": found.host,
            "redis_url": found.redis_url,
            "redis_user": user_of(found.host),
            "redis_password": found.secret,
            "tls_ca": ca,
            "files_url": found.files_url,
        }
    )
