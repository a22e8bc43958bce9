"""Addresses of a running farm (`farm.json` in its state folder), the lock that shows that it runs, and the farm
elsewhere that a person has logged in to."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_serializer

from orchestrator.model import problem
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings, settings_now
from orchestrator.system.private_files import make_private

from .processes import marks


class Endpoints(BaseModel):
    """The facts that `farm up` tells the other commands. The file is readable by its owner only."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    """The supervisor."""
    redis_url: str
    redis_password: SecretStr
    ledger_url: SecretStr = SecretStr("")
    """The URL of a ledger elsewhere (FARM_LEDGER_URL), perhaps with a password; empty: in the state folder."""
    redis_ca: Path | None = None
    """Certificate of the farm's authority, where Redis speaks TLS."""
    hosts_redis_url: str = ""
    """The URL at which hosts reach Redis (`--listen`); empty: they do not."""
    files_url: str = ""
    """The URL at which hosts fetch files."""
    joined: str = ""
    """Redis of the farm whose host this machine is; empty: this is a farm of its own."""
    adb_path: str = ""
    adb_port: int
    adb_socket: Path | None = None
    host: str
    exporter_port: int
    pages_port: int = 0
    """The port of the pages, on loopback; 0: none are served."""
    people_url: str = ""
    """The address of the pages for people of other machines (`--listen`, `FARM_URL`); empty: they have none."""
    people_ca: Path | None = None
    """Certificate of the authority that they have to know; None: theirs is one that is known."""
    virtual_phones: int = 0

    @field_serializer("redis_password", "ledger_url", when_used="json")
    def _reveal(self, value: SecretStr) -> str:
        return value.get_secret_value()

    @property
    def pages_url(self) -> str:
        """Empty where none are served."""
        return f"http://127.0.0.1:{self.pages_port}/" if self.pages_port else ""

    @property
    def address(self) -> str:
        """Return the address of the pages for whoever gets a link: of other machines, or of this one alone."""
        return self.people_url or self.pages_url

    @property
    def api_url(self) -> str:
        """Address of the API; empty where none is served."""
        return f"{self.pages_url}api/v1" if self.pages_port else ""

    @property
    def exporter_url(self) -> str:
        return f"http://127.0.0.1:{self.exporter_port}/metrics"


def _file(state: Path) -> Path:
    return state / "farm.json"


def write(state: Path, endpoints: Endpoints) -> None:
    """Write `farm.json` at once and for the owner's eyes only."""
    new = state / "farm.json.new"
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(endpoints.model_dump_json(indent=1) + "\n")
    new.replace(_file(state))


def read(state: Path) -> Endpoints | None:
    """Endpoints of the farm that runs on this state folder; None where none runs."""
    if holder(state) is None:
        return None
    try:
        return Endpoints.model_validate_json(_file(state).read_bytes())
    except (OSError, ValidationError):
        return None


def pages_of(state: Path) -> str:
    """Return the address of the pages of the farm that runs on this state folder; empty where none are served."""
    found = read(state)
    return found.address if found else ""


def address_of(settings: Settings) -> str:
    """Return the address of the pages of this farm, or of the one that one is logged in to; no stroke ends it."""
    listens = f"https://{settings.listen}:{settings.people_port}" if settings.listen else ""
    return (settings.server or pages_of(settings.state) or settings.url or listens).rstrip("/")


def clear(state: Path) -> None:
    """Forget the endpoints: the farm ends."""
    _file(state).unlink(missing_ok=True)


class StateLock:
    """The right to run a farm on a state folder. The kernel lets go of it when its holder ends, however it ends."""

    def __init__(self, state: Path) -> None:
        """Take it. Raises SetupError naming the pid that holds it, or why the folder cannot be used."""
        try:
            make_private(state)
            self._fd = os.open(_lock_file(state), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as e:
            raise unusable(state, e) from e
        if not self._taken():
            os.close(self._fd)
            raise SetupError(
                f"a farm already runs on {state} (pid {holder(state) or 'unknown'})",
                remedy=f"use it, end it with `farm down --state {state}`, or give another folder with --state",
            )
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def _taken(self) -> bool:
        for _ in range(20):  # `holder` of another process holds a shared lock for an instant
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            else:
                return True
        return False

    def close(self) -> None:
        """Give it back."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def unusable(state: Path, why: OSError) -> SetupError:
    """A state folder that cannot be made or written."""
    remedy = "give a folder that you may write with --state or FARM_STATE"
    return SetupError(f"the state folder {state} cannot be used: {why.strerror}", remedy=remedy)


def holder(state: Path) -> int | None:
    """Pid of the supervisor that runs on this state folder; None where none does."""
    try:
        fd = os.open(_lock_file(state), os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(fd, 32, 0).decode(errors="replace")
        return int(text) if text.isdigit() else 0
    finally:
        os.close(fd)
    return None


def running() -> dict[Path, int]:
    """The farms that this user runs on this machine: state folder -> pid of the supervisor."""
    return {state: pid for state in sorted(marks()) if (pid := holder(state)) is not None}


def _lock_file(state: Path) -> Path:
    return state / "farm.lock"


def _from_environment(state: Path | None) -> Settings:
    try:
        return settings_now(state)
    except ValidationError as e:
        found = [each for each in e.errors() if each["loc"]]
        wrong = "; ".join(f"FARM_{str(each['loc'][0]).upper()}: {problem.describe(each)}" for each in found)
        raise SetupError(f"the environment holds a setting that cannot be used: {wrong}", remedy="unset it") from e


def settings_for(state: Path | None) -> Settings:
    """Settings of a command: the environment first, then what `farm up` wrote into the state folder.

    Raises SetupError where a variable of the environment has no usable value.
    """
    settings = _from_environment(state)
    endpoints = read(settings.state)
    if settings.redis_url or endpoints is None:
        return settings
    if endpoints.joined:
        return settings.model_copy(
            update={
                "adb_port": endpoints.adb_port,
                "adb_socket": endpoints.adb_socket,
                "adb_path": endpoints.adb_path,
                "host": endpoints.host,
            }
        )
    return settings.model_copy(
        update={
            "ledger_url": settings.ledger_url or endpoints.ledger_url.get_secret_value(),
            "redis_url": endpoints.redis_url,
            "redis_password": endpoints.redis_password,
            "tls_ca": endpoints.redis_ca,
            "adb_port": endpoints.adb_port,
            "adb_socket": endpoints.adb_socket,
            "adb_path": settings.adb_path or endpoints.adb_path,
            "host": endpoints.host,
            "exporter_port": endpoints.exporter_port,
        }
    )


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


def login_file(settings: Settings) -> Path:
    return settings.login.expanduser()


def logged_in(settings: Settings) -> Login | None:
    """Return what `farm login` has kept; None: nobody is logged in. Raises SetupError where it cannot be read."""
    path = login_file(settings)
    try:
        return Login.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as e:
        raise SetupError(f"{path}: the log-in cannot be read", remedy="`farm logout`, then `farm login URL`") from e


def log_in(settings: Settings, login: Login) -> Path:
    """Keep it for this user's eyes. Raises SetupError where it cannot be written."""
    path = login_file(settings)
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

    FARM_SERVER names it. Without it the log-in counts, where nothing names a farm here and none runs or has run here.
    A state folder that `farm infer` made for its plans is no farm.
    """
    if state is not None:
        return None
    known = logged_in(settings)
    if settings.server:
        given = settings.token.get_secret_value()
        if known is not None and known.url == settings.server.rstrip("/"):
            return known.model_copy(update={"token": settings.token}) if given else known
        return Login(url=settings.server, token=settings.token, ca=settings.tls_ca)
    here = settings.redis_url or settings.ledger_url or "state" in settings.model_fields_set
    return None if here or settings.ledger_file.exists() or holder(settings.state) is not None else known
