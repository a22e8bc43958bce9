"""An engine's program and libraries for one ABI, as a person brought them."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from .base import Model, rule
from .device import ENGINE_NAME
from .errors import ModelFileError
from .experiment.workload import why_no_file


class EngineBuild(Model):
    """The content of a folder with an engine's program. Its identity is the SHA-256 of its canonical text."""

    engine: str = Field(pattern=f"^{ENGINE_NAME}$")
    abi: str
    version: str = Field(default="", max_length=60)
    """The version as who brought it says; results have what the program says itself."""
    program: str
    """Path of the program below the folder."""
    files: dict[str, str]
    """The files, by their path below the folder, with their SHA-256."""
    bytes: int = Field(ge=0)

    @rule
    def _can_lie_on_a_phone(self) -> None:
        for why in filter(None, map(why_no_file, self.files)):
            raise ValueError(why)
        if self.program not in self.files:
            raise ValueError(f"the program {self.program!r} is not among the files")

    @classmethod
    def read(cls, path: Path) -> EngineBuild:
        """Return the build of a kept file. Raises ModelFileError for what is none."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as e:
            raise ModelFileError(f"{path}: it is no build of an engine: {e.errors()[0]['msg']}") from e
