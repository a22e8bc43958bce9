"""`farm networks check`: whether a model of one's own can run, what stands in the way, and where it would run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from farm.cli.output import JsonOption, argument, out, print_json
from kernels.errors import CompileError, ModelError

from .model_options import BatchOption, SizeOption, sizes_in

if TYPE_CHECKING:
    from kernels.ir.graph import Graph

NOT_SO = 1


def check(
    model: Annotated[Path, argument("MODEL", "ONNX or GGUF file.")],
    batch: BatchOption = None,
    size: SizeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check whether a model can be imported, and list every problem: node, operator, opset, and what to do.

    For a model that can be imported, it prints the kernels that each backend would use, or why the backend refuses it.
    It asks no device and runs nothing. Exit status 1 if there is a problem.

    Example: `farm networks check model.onnx --json`
    """
    from kernels.frontend.load import load_file

    try:
        graph = load_file(model, batch=batch, sizes=sizes_in(size or ()))
    except ModelError as e:
        _tell_obstacles(e, as_json=as_json)
        raise typer.Exit(NOT_SO) from e
    answers = {backend: _compiled(graph, backend) for backend in ("cpu", "opencl", "vulkan")}
    inputs, outputs = ({port: graph.shapes[port] for port in ports} for ports in (graph.inputs, graph.outputs))
    if as_json:
        print_json({"ok": True, "inputs": inputs, "outputs": outputs, "obstacles": [], "backends": answers})
    else:
        _tell(answers)
    if any(answer["refused"] for answer in answers.values()):
        raise typer.Exit(NOT_SO)


def _compiled(graph: Graph, backend: Any) -> dict[str, Any]:
    """Return what a backend makes of a graph: steps by kernel, bytes that live at once, or why it is refused."""
    from kernels.compile import compile_graph
    from kernels.options import Limits, Options

    try:
        plan = compile_graph(graph, Options(backend), Limits()).plan
    except CompileError as e:
        return {"refused": str(e), "kernels": {}, "memory_bytes": 0}
    kernels = Counter(step.program.partition("_")[0] for step in plan.steps if step.kind == "dispatch")
    return {
        "refused": "",
        "kernels": dict(kernels.most_common()),
        "memory_bytes": sum(pool.bytes for pool in plan.pools),
    }


def _tell_obstacles(error: ModelError, *, as_json: bool) -> None:
    obstacles = [vars(each) for each in error.obstacles]
    if as_json:
        print_json({"ok": False, "error": str(error), "obstacles": obstacles, "backends": {}})
        return
    if not obstacles:
        out().print(escape(str(error)))
        return
    from orchestrator.report.listing import Listing

    rows = [(escape(each["node"]), each["operator"], str(each["opset"]), escape(each["reason"])) for each in obstacles]
    out().print(Listing(("node", "operator", "opset", "what to do"), rows))


def _tell(answers: dict[str, dict[str, Any]]) -> None:
    from orchestrator.report.listing import Listing

    rows = []
    for backend, answer in answers.items():
        kernels = ", ".join(f"{count} {name}" for name, count in answer["kernels"].items())
        rows.append((backend, "refused" if answer["refused"] else "runs", escape(answer["refused"] or kernels)))
    out().print(Listing(("backend", "", "kernels"), rows))
