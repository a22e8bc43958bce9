"""Every engine of this host by its name: those of this folder, and those of a folder of one's own (`FARM_ENGINES`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from orchestrator.model.device import DeviceFacts, EngineFacts
from orchestrator.model.errors import SetupError, Unsupported

from .engine import Engine, Host


class Engines:
    """The engines of a host, made once."""

    def __init__(self, host: Host, own: Path | None = None) -> None:
        """`own`: folder of further engines, each a Python file with `ENGINE`. Raises SetupError."""
        self._engines: dict[str, Engine] = {}
        for module in (*_shipped(), *_of_folder(own)):
            kind = getattr(module, "ENGINE", None)
            if not (isinstance(kind, type) and issubclass(kind, Engine)):
                raise SetupError(f"{module.__file__} has no `ENGINE`", remedy="see docs/howto/add-an-engine.md")
            if getattr(kind, "name", "") in self._engines:
                raise SetupError(f"{module.__file__}: there is an engine {kind.name!r} already", remedy="rename it")
            with _blamed(str(module.__file__)):
                EngineFacts(name=kind.name, takes=kind.takes, axes=kind.axes)
                self._engines[kind.name] = kind(host)

    def __iter__(self) -> Iterator[Engine]:
        return iter(self._engines.values())

    def engine(self, name: str, serial: str = "") -> Engine:
        """Raises Unsupported where this host has none of the name."""
        if name not in self._engines:
            raise Unsupported(f"its host has no engine `{name}`; it has: {', '.join(self._engines)}", device=serial)
        return self._engines[name]

    def offered(self, device: DeviceFacts) -> tuple[EngineFacts, ...]:
        """Return the engines as a host announces them for a device, each with what it lacks there."""
        return tuple(_facts(each, device) for each in self)


def _shipped() -> list[ModuleType]:
    """The folders beside this file that have an `engine.py`, and the tools that run from folders."""
    parent, folder = __package__ or "", Path(__file__).parent
    found = sorted((*folder.glob("*/engine.py"), *folder.glob("folder/tools/[a-z]*.py")))
    return [import_module(".".join((parent, *path.relative_to(folder).with_suffix("").parts))) for path in found]


def _of_folder(folder: Path | None) -> list[ModuleType]:
    """Raises SetupError: whatever goes wrong in a file is the file's fault."""
    if folder is None:
        return []
    if not folder.is_dir():
        raise SetupError(f"FARM_ENGINES: there is no folder {folder}", remedy="name a folder of Python files")
    found = []
    for path in sorted(folder.glob("*.py")):
        spec = spec_from_file_location(f"engine_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[spec.name] = module_from_spec(spec)  # dataclasses look their module up
        with _blamed(str(path)):
            spec.loader.exec_module(module)
        found.append(module)
    return found


@contextmanager
def _blamed(path: str) -> Iterator[None]:
    """Raises SetupError for whatever goes wrong within."""
    try:
        yield
    except (Exception, SystemExit) as e:
        raise SetupError(f"{path}: {type(e).__name__}: {e}", remedy="mend the file, or take it away") from e


def _facts(engine: Engine, device: DeviceFacts) -> EngineFacts:
    """A fault in one engine's own file leaves the host and its other engines alone."""
    try:
        return engine.facts(device)
    except Exception as e:
        said = f"its file fails: {type(e).__name__}: {e}; mend it, and start the host again"
        return EngineFacts(name=engine.name, takes=engine.takes, missing=said)
