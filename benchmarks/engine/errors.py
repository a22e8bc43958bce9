"""The error of every network on each API, with each precision and algorithm: relative in norm, on a fresh input.

    python -m benchmarks.engine.errors --networks lenet,squeezenet_v1_1 [--apis vulkan] [-o errors.json] [--resume]
    python -m benchmarks.engine.errors --networks "" -o errors.json --resume --summary     # print what the file has

The reference is PyTorch in double precision where it is installed. An algorithm is used for the convolutions that it
fits, the default for the others. Exit status 1 where a bound is exceeded.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.command_line import run_command
from device_agent.build import build
from kernels.catalog.convolution import ALGORITHMS, CONVOLUTIONS
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.lower.cpu import ALGORITHMS as CPU_ALGORITHMS
from kernels.options import HALF, Backend, Choice, Limits, Options, Precision
from kernels.tuning import layers

from .agent_process import Agent, limits_of
from .case import Case, make_case, relative_error
from .contender import ContenderError
from .kept_rows import add_options, kept_rows
from .machine import describe_machine
from .ours import find_device
from .rounds import scratch

NETWORKS = (
    "lenet,cifar10_quick,autoencoder_784,squeezenet_v1_0,squeezenet_v1_1,mobilenet_v1,mobilenet_v2,alexnet,googlenet,"
    "resnet18,resnet50,inception_v3,vgg16,pynet_level_5,pynet_level_4"
)
APIS: tuple[Backend, ...] = ("opencl", "vulkan", "cpu")
BOUNDS = {"fp32": 5e-5, "relaxed": 5e-5, "imprecise": 5e-5, "fp16": 1.5e-2, "fp16_arithmetic": 1.5e-2}
"""Bounds of whole networks, as kernels/README.md states them."""
WINOGRAD_BOUND = 1e-4
"""The bound in fp32 of each form; `auto` may take it, too."""
ROUNDINGS = 10.0
"""The multiple of rounding's own loss that is allowed instead where a network loses much whoever computes it (instance
normalisation magnifies it), and twice that for Winograd: what PyTorch in single precision loses, or double precision
with everything stored in half."""


@dataclass(frozen=True)
class Found:
    """One cell of the table."""

    network: str
    api: str
    precision: str
    algorithm: str
    convolutions: int
    """The convolutions that the algorithm fits, of all."""
    error: float | None
    bound: float
    why: str = ""
    """The reason why there is no error."""

    @property
    def exceeds(self) -> bool:
        return self.error is not None and not self.error <= self.bound


def bound_of(precision: str, algorithm: str, rounding: Mapping[str, float] | None = None) -> float:
    """The largest error allowed. `rounding`: what `rounding_of` found."""
    wide = algorithm.startswith(("winograd", "auto")) and precision not in HALF
    lost = (rounding or {}).get("half" if precision in HALF else "single", 0.0)
    stated = WINOGRAD_BOUND if wide else BOUNDS[precision]
    return max(stated, stated / BOUNDS[precision] * ROUNDINGS * lost)


def rounding_of(case: Case) -> dict[str, float]:
    """Return what rounding alone loses of this network's first input, in single precision and stored in half; empty
    without PyTorch."""
    try:
        from workers.engines.torch.torch_graph import Unsupported, evaluate_single, evaluate_stored_in_half
    except ImportError:
        return {}
    try:
        single, half = (each(case.graph, case.inputs[0]) for each in (evaluate_single, evaluate_stored_in_half))
    except Unsupported:
        return {}
    wanted = case.wanted[0]
    return {"single": relative_error(single, wanted), "half": relative_error(half, wanted)}


def algorithms(case: Case, options: Options) -> Iterator[tuple[str, int]]:
    """`auto` and every algorithm that fits a convolution of this network, with the number of those."""
    convolutions = [layer.sizes for layer in layers(case.graph, options).values() if "conv" in layer.family.ops]
    yield "auto", len(convolutions)
    if options.backend == "cpu":
        yield from ((name, len(convolutions)) for name in CPU_ALGORITHMS if convolutions)
        return
    for name in ALGORITHMS:
        if fitting := sum(CONVOLUTIONS.fits(Choice(name), conv, options, Limits()) for conv in convolutions):
            yield name, fitting


def measure(case: Case, agent: Agent, facts: dict[str, Any], options: Options, fitting: int, spirv: Path) -> Found:
    """Run once and compare with the bound of any network."""
    bound = bound_of(options.precision, options.algorithm)
    cell = (case.network, options.backend, options.precision, options.algorithm, fitting)
    try:
        bundle = compile_graph(case.graph, options, limits_of(facts), spirv_cache=spirv)
        ran = agent.run(bundle, case.inputs[0], warmup=0, samples=1, limit_s=600.0)
    except CompileError as e:
        return Found(*cell, None, bound, str(e)[:300])
    return Found(*cell, relative_error(ran.outputs, case.wanted[0]), bound)


def table(found: Sequence[Found]) -> str:
    """Markdown: a row for network, API and precision, a column for each algorithm."""
    columns = list(dict.fromkeys(each.algorithm for each in found))
    rows: dict[tuple[str, str, str], dict[str, Found]] = {}
    for each in found:
        rows.setdefault((each.network, each.api, each.precision), {})[each.algorithm] = each
    lines = [f"| network | API | precision | {' | '.join(columns)} |", f"|---|---|---|{'--:|' * len(columns)}"]
    for key, cells in rows.items():
        lines.append(f"| {' | '.join((*key, *(_cell(cells.get(name)) for name in columns)))} |")
    refused = [each for each in found if each.error is None]
    notes = [f"{each.network}, {each.api}, {each.precision}, {each.algorithm}: {each.why}" for each in refused]
    return "\n".join([*lines, *(f"\n{note}" for note in notes)])


def summary(found: Sequence[Found]) -> str:
    """Markdown: a row for network and API; of each precision `auto`, and the worst of the others and of Winograd."""
    kinds = {
        ("fp32", "auto"): "fp32 `auto`", ("fp32", "others"): "fp32, worst but Winograd",
        ("fp32", "winograd"): "fp32, worst Winograd", ("relaxed", "auto"): "relaxed `auto`",
        ("fp16", "auto"): "fp16 `auto`", ("fp16", "winograd"): "fp16, worst Winograd",
        ("fp16_arithmetic", "auto"): "fp16_arithmetic `auto`",
    }  # fmt: skip
    lines = [f"| network | API | {' | '.join(kinds.values())} |", f"|---|---|{'--:|' * len(kinds)}"]
    for network, api in dict.fromkeys((each.network, each.api) for each in found):
        own = [each for each in found if (each.network, each.api) == (network, api) and each.error is not None]
        worst = {(each.precision, _kind(each)): each for each in sorted(own, key=lambda each: each.error or 0.0)}
        cells = (
            "" if (one := worst.get(key)) is None else _cell(one) + (f" {one.algorithm}" if key[1] != "auto" else "")
            for key in kinds
        )
        lines.append(f"| {network} | {api} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _kind(found: Found) -> str:
    if found.algorithm.startswith("winograd"):
        return "winograd"
    return "auto" if found.algorithm == "auto" else "others"


def _cell(found: Found | None) -> str:
    if found is None:
        return ""
    if found.error is None:
        return "-"
    return f"**{found.error:.1e}**" if found.exceeds else f"{found.error:.1e}"


def main() -> int:
    """Measure and print; status 1 where a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--apis", default=",".join(APIS))
    parser.add_argument("--precisions", default="fp32,relaxed,fp16")
    parser.add_argument("--algorithms", default="", help="with commas; default: all that fit")
    parser.add_argument("--device", default="", help="words of the GPU's name")
    parser.add_argument("--binary", type=Path, help="native agent")
    parser.add_argument("--spirv-cache", type=Path)
    parser.add_argument("--summary", action="store_true", help="print the ends only: `auto` and the worst")
    add_options(parser)
    arguments = parser.parse_args()
    kept = kept_rows(arguments, {"machine": describe_machine()})
    references: dict[str, str] = kept.about.setdefault("references", {})
    roundings: dict[str, dict[str, float]] = kept.about.setdefault("roundings", {})
    with scratch() as folder:
        agent = Agent(arguments.binary or build(), folder / "caches")
        for network in filter(None, arguments.networks.split(",")):
            done = {(row["api"], row["precision"], row["algorithm"]) for row in kept.of(network=network)}
            case = make_case(network, folder / "cases")
            references[network], roundings[network] = case.reference, rounding_of(case)
            kept.rows = [asdict(_bounded(Found(**row), roundings)) for row in kept.rows]
            for each in _cells(case, agent, arguments, done, arguments.spirv_cache or folder / "spirv"):
                kept.add(asdict(_bounded(each, roundings)))
                said = f"{each.error:.1e}" if each.error is not None else each.why
                print(f"{network} {each.api} {each.precision} {each.algorithm}: {said}", file=sys.stderr, flush=True)
            kept.write()
    found = [Found(**row) for row in kept.rows]
    print(summary(found) if arguments.summary else table(found))
    return int(any(each.exceeds for each in found))


def _cells(
    case: Case, agent: Agent, arguments: argparse.Namespace, done: set[tuple[str, str, str]], spirv: Path
) -> Iterator[Found]:
    """Yield what is asked for, fits and is not done yet."""
    chosen = arguments.algorithms.split(",") if arguments.algorithms else None
    precisions: list[Precision] = arguments.precisions.split(",")
    for api in (each for each in APIS if each in arguments.apis.split(",")):
        try:
            facts = find_device(agent, api, arguments.device)
        except ContenderError as e:
            print(f"{api}: {e}", file=sys.stderr)
            continue
        for precision in (each for each in precisions if each in facts["precisions"]):
            for algorithm, fitting in algorithms(case, Options(api, precision)):
                if (chosen is None or algorithm in chosen) and (api, precision, algorithm) not in done:
                    yield measure(case, agent, facts, Options(api, precision, algorithm), fitting, spirv)


def _bounded(found: Found, roundings: Mapping[str, Mapping[str, float]]) -> Found:
    return replace(found, bound=bound_of(found.precision, found.algorithm, roundings.get(found.network)))


if __name__ == "__main__":
    run_command(main)
