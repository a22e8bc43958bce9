"""What tuning found, by device, driver, precision and convolution: a file of the user's; the farm ships none."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kernels.errors import InputError
from kernels.options import Choice


class Found(BaseModel):
    """The best choice for one convolution on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    device: str
    """API, device and driver, as `device_key` writes them."""
    precision: str
    conv: str
    """`Convolution.key`."""
    algorithm: str
    tile: str
    ms: float = Field(gt=0)
    default_ms: float | None = None
    """What the compiler's own choice took; None where it could not be measured."""
    tried: int = Field(ge=1)
    at: float
    """Unix time."""

    @property
    def choice(self) -> Choice:
        return Choice(self.algorithm, self.tile)

    @property
    def place(self) -> tuple[str, str, str]:
        return self.device, self.precision, self.conv


_LIST = TypeAdapter(list[Found])


def device_key(api: str, device: str, driver: str) -> str:
    """Another driver is another device: what is fast changes with it."""
    return f"{api} | {device} | {driver}"


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

    def tuned(self, device: str, precision: str) -> Mapping[str, Choice]:
        """Key of a convolution -> choice, as `Options.tuned` takes them."""
        return {f.conv: f.choice for f in self._found.values() if (f.device, f.precision) == (device, precision)}

    def get(self, device: str, precision: str, conv: str) -> Found | None:
        return self._found.get((device, precision, conv))

    def add(self, found: Found) -> None:
        self._found[found.place] = found

    def remove(self, device: str, precision: str, convs: Iterable[str]) -> None:
        """Forget choices that proved worse in the whole network."""
        for conv in convs:
            self._found.pop((device, precision, conv), None)

    def merge(self, others: Iterable[Found]) -> int:
        """Take what is new or newer; returns how many that were."""
        fresh = [f for f in others if f.place not in self._found or self._found[f.place].at < f.at]
        for found in fresh:
            self.add(found)
        return len(fresh)

    def save(self, path: Path | None = None) -> None:
        """Write to `path`, or to where it came from."""
        target = path or self._path
        if target is None:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps([found.model_dump() for found in self], indent=1)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
            file.write(text + "\n")
        Path(file.name).chmod(0o644 & ~_umask())
        Path(file.name).replace(target)


def read(path: Path) -> list[Found]:
    """Entries of an exported file. Raises InputError with the place of what is wrong."""
    try:
        return _LIST.validate_json(path.read_bytes())
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror}") from e
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        raise InputError(f"{path}: entry {first['loc']}: {first['msg']}; write it with `farm tune export`") from e


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
