"""Findings of tuning, by device, driver, threads, precision and layer: a file of the user's; the farm ships none."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kernels.errors import InputError
from kernels.options import Choice


class Found(BaseModel):
    """The best choice for one layer on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    """API, device, driver and number of threads, as `device_key` writes them."""
    precision: str
    conv: str
    """`key` of the layer, whatever its kind."""
    algorithm: str
    tile: str
    ms: float = Field(gt=0)
    default: str
    """The compiler's own choice, in words."""
    default_ms: float | None = None
    """The time of that; None where it could not be measured."""
    tried: int = Field(ge=1)
    failed: int = Field(default=0, ge=0)
    """Number of those that did not run or computed wrongly."""
    kept: bool | None = None
    """True if a whole network was faster with it; None: not compared yet. Only kept choices are used."""
    at: float
    """Unix time."""

    @property
    def choice(self) -> Choice:
        return Choice(self.algorithm, self.tile)

    @property
    def is_default(self) -> bool:
        """True if nothing was faster than the compiler's own choice."""
        return self.choice.words == self.default

    @property
    def gain(self) -> float | None:
        """The speed in multiples of that of the compiler's own choice."""
        return self.default_ms / self.ms if self.default_ms else None

    @property
    def place(self) -> tuple[str, str, str]:
        return self.device, self.precision, self.conv


_LIST = TypeAdapter(list[Found])


def device_key(api: str, device: str, driver: str, *, threads: int = 0) -> str:
    """Another driver is another device, and so is another number of `threads` of the CPU backend (0 where there are
    none to count): what is fast changes with them."""
    counted = (f"{threads} thread{'s' if threads > 1 else ''}",) if threads else ()
    return " | ".join((api, device, driver, *counted))


class Database:
    """All that was found; in memory where `path` is None. Saved as a whole: a reader sees the old file or the new."""

    def __init__(self, path: Path | None = None) -> None:
        """Raises InputError where the file is there and cannot be read."""
        self._path = path
        self._found: dict[tuple[str, str, str], Found] = {}
        if path is not None and path.is_file():
            self.merge(read(path))

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Found]:
        return iter(sorted(self._found.values(), key=lambda found: found.place))

    def tuned(self, device: str, precision: str, *, proven: bool = True) -> dict[str, Choice]:
        """Key of a layer -> choice, as `Options.tuned` takes them, where it is not the compiler's own.

        `proven`: only what a whole network was faster with; else also what was not compared yet.
        """
        return {
            found.conv: found.choice
            for found in self
            if (found.device, found.precision) == (device, precision)
            and not found.is_default
            and (found.kept or (found.kept is None and not proven))
        }

    def get(self, device: str, precision: str, conv: str) -> Found | None:
        return self._found.get((device, precision, conv))

    def add(self, found: Found) -> None:
        self._found[found.place] = found

    def mark(self, device: str, precision: str, convs: Iterable[str], *, kept: bool) -> None:
        """Note whether a whole network was faster with these choices."""
        for conv in convs:
            if found := self.get(device, precision, conv):
                self.add(found.model_copy(update={"kept": kept, "at": time.time()}))

    def merge(self, others: Iterable[Found]) -> int:
        """Take what is new or newer; returns how many that were."""
        fresh = [f for f in others if f.place not in self._found or self._found[f.place].at < f.at]
        for found in fresh:
            self.add(found)
        return len(fresh)

    def save(self, path: Path | None = None) -> None:
        """Write to `path`, or to where it came from: there what another process found meanwhile is kept."""
        target = path or self._path
        if target is None:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if path is not None:
            self._write(target)
            return
        with FileLock(target.with_name(f"{target.name}.lock"), fallback_to_soft=False):
            if target.is_file():
                self.merge(read(target))
            self._write(target)

    def _write(self, target: Path) -> None:
        text = json.dumps([found.model_dump() for found in self], indent=1)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}-", delete=False) as file:
            file.write(text + "\n")
        Path(file.name).chmod(0o644)
        Path(file.name).replace(target)


def read(path: Path) -> list[Found]:
    """Entries of an exported file. Raises InputError with the place of what is wrong."""
    try:
        return _LIST.validate_json(path.read_bytes())
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror}") from e
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        raise InputError(f"{path}: {_place(first['loc'])}{first['msg']}; write it with `farm tune export`") from e


def _place(location: tuple[int | str, ...]) -> str:
    """`(3, "ms")` -> `entry 3, ms: `."""
    return "".join(f"entry {part}, " if isinstance(part, int) else f"{part}: " for part in location)
