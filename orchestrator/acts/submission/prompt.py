"""The prompt that an experiment gives itself: its tokens, kept by their hash."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernels.frontend.tokens import read_tokens
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment import Matrix
from orchestrator.model.experiment.language_model import PromptFile

from .gather import Gathered, file_of, told


def with_prompt(found: Gathered, axes: Matrix, base: Path, artifacts: Artifacts) -> tuple[Gathered, Matrix]:
    """The workload with the tokens of its own prompt kept, and the axes with their number. Raises ModelFileError."""
    workload, field = found.workload, "workload.prompt"
    if not isinstance(given := workload.prompt, str | PromptFile):
        return found, axes
    from .tokenizer import tokens_of  # with it all of the import of models, a tenth of a second of every command

    name = str(workload.language_model)
    model = base / name
    model = model if model.exists() else artifacts.path(str(workload.language_model_sha256))
    with told(field, model, name):
        if isinstance(given, str):
            tokens = tokens_of(model, given)
        elif given.tokens is not None:
            tokens = read_tokens(file_of(base, given.tokens, field))
        else:
            tokens = tokens_of(model, _text(file_of(base, str(given.text), field)))
    content = io.BytesIO()
    np.save(content, tokens)
    update = {"prompt": None, "prompt_sha256": artifacts.put_bytes(content.getvalue())}
    kept = replace(found, workload=workload.model_copy(update=update))
    return kept, axes.model_copy(update={"prompt": (len(tokens),)})


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as e:
        raise ModelFileError(f"workload.prompt: {path} is no text in UTF-8", remedy="give a text file") from e
