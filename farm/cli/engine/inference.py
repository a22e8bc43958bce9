"""Show the result of `farm infer`: as data, as a table, as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.markup import escape

from orchestrator.analysis.figures import NS_PER_MS
from orchestrator.report import wording
from orchestrator.report.listing import Head, Listing

if TYPE_CHECKING:
    from workers.infer import InferResult

Tensors = Mapping[str, npt.NDArray[Any]]
TOP = 5
MAX_NAME = 180
"""Longest file name that is made of a tensor's name; file systems allow 255 bytes."""


def write_tensors(folder: Path, tensors: Tensors) -> dict[str, str]:
    """Write each tensor as `<name>.npy` and the mapping as `index.json`; tensor name -> file name.

    A name never leaves the folder: path separators and other characters that are not safe become `_`; where two names
    would meet, the later one gets a number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    taken = {"index.json"}
    for name, tensor in tensors.items():
        file = file_name(name, taken)
        np.save(folder / file, tensor, allow_pickle=False)
        files[name] = file
    (folder / "index.json").write_text(json.dumps(files, indent=1) + "\n")
    return files


def file_name(name: str, taken: set[str], ending: str = ".npy") -> str:
    """A safe name of a file that is not among those taken, in lower case: some file systems do not tell."""
    safe = re.sub(r"[/\\\x00-\x1f]", "_", name)[:MAX_NAME] or "_"
    safe = "_" + safe[1:] if safe.startswith(".") else safe
    number, file = 1, f"{safe}{ending}"
    while file.lower() in taken:
        number += 1
        file = f"{safe}~{number}{ending}"
    taken.add(file.lower())
    return file


def as_data(result: InferResult, outputs: Sequence[str], written: Mapping[str, str]) -> dict[str, Any]:
    """Everything that `--json` prints. `outputs`: the model's own ones, without those that a dump adds."""
    facts = result.runs_on.facts
    memory = result.memory
    return {
        "outputs": {name: describe(result.outputs[name]) for name in outputs},
        "inference_ms": result.sample.duration_ns / NS_PER_MS,
        "setup_ms": [
            {"step": step.step, "ms": step.duration_ns / NS_PER_MS, "cached": step.cached, "detail": step.detail}
            for step in result.setup
        ],
        "memory": None if memory is None else memory.model_dump(mode="json", exclude={"event", "seq", "t_ns"}),
        "runs_on": {
            "device": result.device.serial,
            "source": result.device.source.value,
            "api": facts.api.value,
            "api_version": facts.version,
            "device_name": facts.device_name,
            "driver": facts.driver,
            "library": facts.library,
            "precision": result.runs_on.precision.value,
            "threads": result.runs_on.threads,
        },
        "plan": {"name": result.plan.name, "hash": result.plan.plan_hash, "steps": len(result.plan.steps)},
        "files": dict(written),
    }


def describe(tensor: npt.NDArray[Any]) -> dict[str, Any]:
    """Shape and range of an output, and its five largest where it looks like class scores."""
    values = np.asarray(tensor, dtype=np.float64 if tensor.dtype.kind == "f" else None).ravel()
    finite = values[np.isfinite(values)]
    found: dict[str, Any] = {
        "shape": list(tensor.shape),
        "min": finite.min().item() if finite.size else None,
        "max": finite.max().item() if finite.size else None,
        "finite": bool(finite.size == values.size),
    }
    if found["finite"] and looks_like_scores(tensor.shape):
        order = np.argsort(-values.astype(np.float64), kind="stable")[:TOP]
        found["top5"] = [{"class": int(index), "score": values[index].item()} for index in order]
    return found


def looks_like_scores(shape: tuple[int, ...]) -> bool:
    """One image, and one number a class: (1, C), (1, C, 1, 1) or (C,) with at least ten classes."""
    large = [size for size in shape if size != 1]
    return len(large) == 1 and large[0] >= 10


def render(facts: dict[str, Any]) -> RenderableType:
    """The same for people."""
    where = facts["runs_on"]
    took = f"[bold]{wording.ms(facts['inference_ms'])} ms[/], the first one, not warmed up: `farm run` measures"
    rows = [
        ("[bold]ran on[/]", escape(f"{where['device']} ({where['source']}): {where['device_name']}")),
        ("", escape(f"{where['api']} {where['api_version']} · {where['driver']} · {where['precision']}")),
        ("[bold]inference[/]", took),
    ]
    steps = (f"{step['step']} {wording.ms(step['ms'])}{' (cached)' * step['cached']}" for step in facts["setup_ms"])
    rows.append(("[bold]set-up ms[/]", escape(" · ".join(steps))))
    if facts["memory"]:
        memory = facts["memory"]
        peak, process = wording.memory_size(memory["device_peak_bytes"]), wording.memory_size(memory["vm_hwm_bytes"])
        rows.append(("[bold]memory[/]", f"{peak} on the device at most · {process} process at most"))
    return Group(
        Listing(("", ""), rows, header=False), *(_output(name, output) for name, output in facts["outputs"].items())
    )


def _output(name: str, output: dict[str, Any]) -> RenderableType:
    shape = " x ".join(map(str, output["shape"]))
    title = f"\n[bold]{escape(name)}[/]  {shape}" + ("" if output["finite"] else "  [red]holds NaN or infinity[/]")
    if "top5" not in output:
        low, high = (_number(output[end]) for end in ("min", "max"))
        return f"{title}  {low} ... {high}"
    rows = [(str(row["class"]), _number(row["score"])) for row in output["top5"]]
    return Group(title, Listing((Head("class", True), Head("score", True)), rows))


def _number(value: float | None) -> str:
    """Four digits, of whole numbers all; none where no value is finite."""
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
