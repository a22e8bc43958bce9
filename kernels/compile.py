"""graph -> passes -> lowering -> memory -> plan -> validation. `python -m kernels.compile` writes a bundle."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .assemble import assemble
from .errors import CompileError, OptionError
from .frontend.load import load_workload
from .ir.check import check_graph
from .ir.graph import Graph
from .lower.cpu import lower_cpu
from .memory.fit_to_budget import budget_of, lower_to_fit
from .options import PRECISIONS, Limits, Options
from .passes import prepare
from .plan.model import Bundle
from .plan.validate import validate


def compile_graph(graph: Graph, options: Options, limits: Limits, *, spirv_cache: Path | None = None) -> Bundle:
    """Compile a graph for a device. The same input gives the same `plan_hash`.

    `spirv_cache`: folder of compiled shaders; None: the user's cache folder. Raises ModelError (shapes do not fit each
    other), OptionError (an option does not fit: names those that do), UnsupportedNode, PlanError (a limit of the
    device is exceeded), ToolError (no SPIR-V compiler).
    """
    _check_options(options, limits)
    check_graph(graph)
    if options.layout == "image":
        # a kernel may not read and write one image, and images are neither parted nor swapped
        options = replace(options, in_place=False, concat="join", swap="never")
    limits = replace(limits, memory_budget_bytes=budget_of(options, limits))
    if options.keep_all:
        graph = _keep_all(graph)
    if options.backend == "cpu":
        draft = lower_cpu(prepare(graph, options), options)
    else:
        draft = lower_to_fit(graph, options, limits)
    bundle = assemble(draft, options, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits)
    return bundle


def _check_options(options: Options, limits: Limits) -> None:
    if options.precision not in limits.precisions:
        allowed = ", ".join(limits.precisions)
        raise OptionError(f"the device has no {options.precision} for {options.backend}; it has: {allowed}")
    if options.backend == "cpu" and options.half:
        raise OptionError(f"the CPU backend has no {options.precision}; it has: fp32, relaxed")
    if options.layout not in ("buffer", "image"):
        raise OptionError(f"there is no layout {options.layout!r}; there are: buffer, image")
    if options.layout == "image":
        _check_images(options, limits)
    if options.backend != "cpu" and options.threads:
        raise OptionError(f"threads is an option of the CPU backend, not of {options.backend}; leave it out")
    if options.backend == "cpu":
        _check_left_out(options, ("concat", "in_place", "swap", "pools", "workspace", "workspace_split"))
    if min(options.memory_budget, options.workspace) < 0:
        raise OptionError("memory_budget and workspace are numbers of bytes from 0 on")


def _check_left_out(options: Options, names: Sequence[str]) -> None:
    for name in names:
        if getattr(options, name) != Options.__dataclass_fields__[name].default:
            raise OptionError(f"{name} is an option of OpenCL and Vulkan, not of the CPU backend; leave it out")


def _check_images(options: Options, limits: Limits) -> None:
    if options.backend == "cpu":
        raise OptionError("layout: the CPU backend has no images; it has: buffer")
    if options.precision == "fp16_arithmetic":
        raise OptionError("layout: kernels that compute in halves read no images; use precision fp16, or layout buffer")
    if 0 in limits.image_size:
        raise OptionError(f"layout: the device has no images for {options.backend}; it has: buffer")
    if options.backend == "opencl" and limits.opencl_c in ("1.0", "1.1"):
        raise OptionError("layout: kernels read images without a sampler, which needs OpenCL C 1.2; use: buffer")


def _keep_all(graph: Graph) -> Graph:
    """Every node's output becomes an output of the graph, in the order of the nodes; the graph's own come first."""
    kept = [name for node in graph.nodes for name in node.outputs if name]
    return replace(graph, outputs=tuple(dict.fromkeys([*graph.outputs, *kept])))


def main(argv: list[str] | None = None) -> int:
    """Compile a network or an ONNX file to a folder, for development; `farm plan` is the users' way."""
    parser = argparse.ArgumentParser(prog="python -m kernels.compile", description=main.__doc__)
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--network", help="name of a built-in network")
    model.add_argument("--onnx", type=Path, help="ONNX file")
    parser.add_argument("--seed", type=int, default=1, help="seed of a network's weights")
    parser.add_argument("--backend", choices=("opencl", "vulkan", "cpu"), default="opencl")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--algorithm", default="auto")
    parser.add_argument("--granularity", type=int, default=0)
    parser.add_argument("--layout", choices=("buffer", "image"), default="buffer")
    parser.add_argument("--fuse", default="all", help="all, none, or names joined by +")
    parser.add_argument("--keep-all", action="store_true", help="make every node's output an output of the plan")
    parser.add_argument("--cpu-device", action="store_true", help="compile for PoCL or lavapipe")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the bundle")
    arguments = parser.parse_args(argv)
    options = Options(
        backend=arguments.backend,
        precision=arguments.precision,
        algorithm=arguments.algorithm,
        granularity=arguments.granularity,
        layout=arguments.layout,
        fuse=arguments.fuse,
        keep_all=arguments.keep_all,
    )
    try:
        graph = load_workload(network=arguments.network, onnx=arguments.onnx, seed=arguments.seed)
        bundle = compile_graph(graph, options, Limits(cpu_device=arguments.cpu_device))
    except CompileError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    bundle.write(arguments.output)
    print(f"{arguments.output}: {bundle.plan.name}, {len(bundle.plan.steps)} steps, plan {bundle.plan.plan_hash}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
