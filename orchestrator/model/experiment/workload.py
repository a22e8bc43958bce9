"""The workload: a network, an ONNX file with an input or a set, a language model, an engine's own, or a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from string import Formatter
from typing import Annotated

from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Seconds

from .dataset import Dataset
from .language_model import PromptFile
from .training import Training

KINDS = ("network", "onnx", "model", "wait", "command", "language_model")
"""The fields that say what runs."""
PLACEHOLDERS = ("backend", "batch", "precision", "samples", "seed", "threads", "warmup")
"""Names in braces that a command may have."""
MOST_TOKENS = 1 << 20
"""The most tokens of a text's part."""
_FILE = re.compile(r"[\w.+,@=~-]+(/[\w.+,@=~-]+)*", re.ASCII)


def why_no_file(name: str) -> str:
    """Return why a file of a command cannot have this name on every phone; empty: it can."""
    if _FILE.fullmatch(name) and ".." not in name.split("/"):
        return ""
    return f"files: {name!r}: a name has letters, digits and `. _ + , @ = ~ -` alone"


MOST_FILES = 512
"""Files of a command, of an engine or of its model."""


def why_no_files(names: Collection[str], place: Path) -> str:
    """Return why a folder's files cannot go to a phone; empty: they can."""
    if not 0 < len(names) <= MOST_FILES:
        return f"{len(names)} files in {place}: 1 to {MOST_FILES} may be"
    return next(filter(None, map(why_no_file, names)), "").removeprefix("files: ")


Prompt = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Context = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Texts = Annotated[int, Field(ge=1, le=4096)]


class Workload(Model):
    """A network with seeded weights, an ONNX file, a language model, other engines' model, a command or a wait; one."""

    network: str | None = None
    """Name of a built-in network (`farm networks` lists them)."""
    parameters: dict[str, int | tuple[int, ...]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Sizes of a built-in network that has some (`farm networks`): `{size: 128}`, `{hidden: [1000, 250, 10]}`."""
    sizes: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Sizes that an ONNX file leaves open, by name: `{height: 320}`; those that `input` or `dataset` have need none."""
    seed: int = 1
    """Seed of the weights of a built-in network, and of the random input where no input file is given."""
    onnx: str | None = None
    """Path of an ONNX file, relative to the experiment file; `sha256:HASH`: a model that a training of
    this farm left."""
    onnx_sha256: str | None = None
    """Filled in at submission: the model's identity."""
    input: str | None = None
    """Path of a `.npy` input, relative to the experiment file; seeded random numbers where absent."""
    input_sha256: str | None = None
    """Filled in at submission."""
    choices: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Path of a choices file (`farm best -o`), relative to the experiment file: layers with axes of their own; the axis
    `choices` says whether the best or the worst."""
    choices_sha256: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Filled in at submission."""
    dataset: Dataset | None = Field(default=None, exclude_if=lambda value: value is None)
    """Examples instead of one input: what the model predicts for each is kept, and predictions of the configurations
    are compared (`farm agreement`)."""
    training: Training | None = Field(default=None, exclude_if=lambda value: value is None)
    """Train the network instead of running it."""
    model: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Path of a model in the format of the engines that run it (a file, or a folder of its files), relative to the
    experiment file: `model.gguf`, `model.tflite`."""
    wait: Seconds | None = Field(default=None, exclude_if=lambda value: value is None)
    """The time that each sample takes, with a unit: `200 ms`. Nothing is computed; for `matrix.engine: wait`."""

    command: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Command line of a program of one's own: words as a shell splits them, run without one. `{threads}` is the value
    of that axis; with `{samples}` it is started once a block and prints so many, else once a sample."""
    files: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The folder, or the one file, that the command needs, relative to the experiment file; it runs beside them."""
    files_sha256: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Filled in at submission: the files of `files`, or of `model`, by name."""
    language_model: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Path of a GGUF file, or of an ONNX decoder with its cache (a file, or a folder with one), relative to the
    experiment file. A sample is a prompt with its answer: tokens are drawn by `seed`, the answer's have the largest
    logits."""
    language_model_sha256: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Filled in at submission."""
    language_model_bytes: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    """Filled in at submission: the file's size."""
    prompt: Prompt | tuple[Prompt, ...] | str | PromptFile | None = Field(default=None, exclude=True)
    """Tokens of the prompt; one number or several, as `matrix.prompt`. Or the prompt itself: a text, of which the
    model's own tokenizer makes tokens; `{text: FILE}`, `{tokens: FILE}`."""
    prompt_sha256: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Filled in at submission: the prompt's own tokens."""
    generate: Prompt | tuple[Prompt, ...] | None = Field(default=None, exclude=True)
    """Tokens of the answer, as `matrix.generate`."""
    context: Context | tuple[Context, ...] | None = Field(default=None, exclude=True)
    """Tokens that the model has taken before the clock starts, as `matrix.context`."""
    batch: Texts | tuple[Texts, ...] | None = Field(default=None, exclude=True)
    """Texts of one length that the model takes side by side, as `matrix.batch`."""

    @rule
    def _can_be_started(self) -> None:
        if self.files is not None and self.command is None:
            raise ValueError("`files` are those of a `command`")
        for why in filter(None, map(why_no_file, self.files_sha256)):
            raise ValueError(why)
        if self.command is None:
            return
        if not self.words:
            raise ValueError("the `command` is empty")
        for name in sorted(self.placeholders.difference(PLACEHOLDERS)):
            raise ValueError(
                f"the command has `{{{name}}}`; known in braces: {', '.join(PLACEHOLDERS)}; `{{{{` is a brace"
            )

    @rule
    def _one_of(self) -> None:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                "give exactly one of `network` (a built-in name), `onnx` (a file), `language_model` (a file), "
                "`model` (of other engines), `command` and `wait`"
            )
        alone = given[0] in ("model", "wait", "command", "language_model")
        if alone and any((self.input, self.choices, self.dataset, self.training)):
            raise ValueError(f"a workload with `{self.kind}` has no `input`, `choices`, `dataset` or `training`")
        text = [each for each in (self.prompt, self.generate, self.context, self.batch) if each is not None]
        if text and self.language_model is None:
            raise ValueError("`prompt`, `generate`, `context` and `batch` are of a `language_model`")
        if self.parameters and self.network is None:
            raise ValueError("`parameters` are those of a built-in `network`")
        if self.sizes and self.onnx is None:
            raise ValueError("`sizes` are those that an `onnx` file leaves open; a `network` has `parameters`")
        if self.dataset is not None and self.input is not None:
            raise ValueError("give one of `input` (one input for every inference) and `dataset` (many examples)")
        if self.training is not None and (self.input is not None or self.dataset is not None):
            raise ValueError("`training` has a `dataset` of its own: leave out `workload.input` and `workload.dataset`")

    def __hash__(self) -> int:
        sizes = tuple(sorted(self.every_size.items()))
        model = (self.network, sizes, self.seed, self.onnx, self.onnx_sha256, self.choices_sha256, self.language_model)
        return hash((*model, self.input, self.dataset, self.training, self.wait, self.command, self.model))

    @property
    def kind(self) -> str:
        """Return the field that says what runs; an engine takes some of them."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def sample(self) -> str:
        """Return what a sample is, as reports call it."""
        return "epoch" if self.training else "answer" if self.language_model else "inference"

    @property
    def model_sha256(self) -> str:
        """Return the hash of the model's file; empty where it has none, or was not submitted."""
        return self.onnx_sha256 or self.language_model_sha256 or ""

    @property
    def words(self) -> list[str]:
        """Return the words of the command, braces and all. Raises ValueError where a quote is not closed."""
        try:
            return shlex.split(self.command or "")
        except ValueError as e:
            raise ValueError(f"the command cannot be split into words: {e}") from e

    @property
    def placeholders(self) -> frozenset[str]:
        """Return the names in braces of the command. Raises ValueError where a brace is not closed."""
        try:
            parts = [part for word in self.words for part in Formatter().parse(word)]
        except ValueError as e:
            raise ValueError(f"the command cannot be read: {e}; write `{{{{` and `}}}}` for braces of its own") from e
        if shaped := next((name for _, name, shape, how in parts if shape or how), ""):
            raise ValueError(f"the command has more than a name in the braces of `{shaped}`: write `{{{shaped}}}`")
        return frozenset(name for _, name, *_ in parts if name is not None)

    def argv(self, values: Mapping[str, object]) -> list[str]:
        """Return the command's words with the values of its names; one that has none is an error of the caller."""
        return [word.format_map(values) for word in self.words]

    @property
    def every_size(self) -> dict[str, int | tuple[int, ...]]:
        """`parameters` of a network, `sizes` of a file."""
        return self.parameters or dict(self.sizes)

    @property
    def label(self) -> str:
        if self.wait is not None:
            return f"wait {1000 * self.wait:g} ms"
        if self.command is not None:
            return " ".join(PurePosixPath(word).name for word in self.words[:2] if word[:1] not in ("-", "{"))
        if self.model is not None:
            return PurePosixPath(self.model).name
        name = self.network or str(self.onnx or self.language_model).rsplit("/", 1)[-1].removesuffix(".onnx")
        return name + "".join(f" {size}={_sizes_text(value)}" for size, value in sorted(self.every_size.items()))


def _sizes_text(value: int | tuple[int, ...]) -> str:
    return str(value) if isinstance(value, int) else "-".join(map(str, value))
