"""Language models in an engine's own Python: each answer token by token, judged as our own engine's are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.ir.decoder import DecoderStep
from orchestrator.model.experiment.language_model import Text
from orchestrator.model.job import Cell, Job
from workers.engines.agent import raise_failure
from workers.engines.engine import Verdict
from workers.engines.models import Arrays, Models
from workers.engines.told import answered

from .base import PackagedEngine
from .program import DrivenProgram


@dataclass(kw_only=True)
class AnswerProgram(DrivenProgram):
    """A program whose samples are answers: behind start and duration of each, the tokens' times and their numbers."""

    models: Models
    text: Text

    def told_of(self, more: Sequence[int]) -> dict[str, Any]:
        times, tokens = tuple(more[: self.text.generate]), tuple(more[self.text.generate :])
        return {"context": self.text.context, "prompt": self.text.prompt, "token_ns": times, "tokens": tokens}

    def check(self) -> None:
        super().check()
        for found in self.samples.values():
            times = found[:, 2 : 2 + self.text.generate]
            if not self.unread and ((times[:, :1] < found[:, :1]).any() or (times[:, 1:] < times[:, :-1]).any()):
                self.unread = "its tokens' times go back"

    def verdict(self) -> Verdict:
        words = self.models.texts.decoder(self.job.cell.workload, self.text)[-1].words
        most = max(int(found[:, -self.text.generate :].max(initial=0)) for found in self.samples.values())
        if most >= words:
            said = f"{self.what} gave the token {most}, and the model's vocabulary has {words}"
            raise_failure("unread_output", said, self.serial, "mend its driver")
        return answered(self.models, self.job.cell, list(self.read(self.agent.events)))


class AnsweringEngine(PackagedEngine):
    """An engine of language models. Its driver has `begin(tokens)`, which empties the cache and takes a context;
    `take(tokens)`, a prompt; and `next()`, which returns the number of the next token."""

    takes = ("language_model",)

    @abstractmethod
    def written(self, model: Path, step: DecoderStep, cell: Cell, folder: Path) -> Sequence[str]:
        """Write the model as the engine takes it into a folder; return its files' names. `step`: the model's, of one
        token. Raises Unsupported for a model that it cannot run."""

    def inputs(self, job: Job) -> Arrays:
        assert job.cell.text is not None
        return {"tokens": self.host.models.texts.tokens(job.cell.workload, job.cell.text)}

    def model(self, job: Job, made: Path) -> dict[str, Any]:
        texts, cell = self.host.models.texts, job.cell
        assert cell.text is not None
        step = texts.decoder(cell.workload, cell.text)[-1]
        return {"files": self.written(texts.file(cell.workload), step, cell, made)}

    def program(self, identity: str, job: Job, argv: list[str], files: dict[str, Path], pushed: str) -> DrivenProgram:
        text = job.cell.text
        assert text is not None
        return AnswerProgram(
            identity, job, argv, files, pushed,
            engine=type(self), models=self.host.models, text=text, columns=2 + 2 * text.generate,
        )  # fmt: skip
