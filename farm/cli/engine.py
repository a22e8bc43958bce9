"""`farm networks`, `farm plan`, `farm infer`: the compiler and the engine, outside the queue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn

from kernels.options import Limits, Options
from orchestrator.errors import Unsupported
from orchestrator.model.device import Api, DeviceFacts, Precision

from . import completion, model_check, plan_check
from .axis_options import with_compiler_options
from .farm_access import settings_of
from .output import JsonOption, StateOption, log, out, print_json

if TYPE_CHECKING:
    from kernels.ir.graph import Graph

PANEL = "The engine, outside the queue"

ModelArgument = Annotated[Path | None, typer.Argument(metavar="MODEL.onnx", help="ONNX file.", show_default=False)]
NetworkOption = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="NAME",
        help="Built-in network instead of a file.",
        autocompletion=completion.networks,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="SERIAL",
        help="Device that runs it.",
        show_default="this workstation",
        autocompletion=completion.serials,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of a built-in network's weights and of random inputs.")]
TunedOption = Annotated[
    bool, typer.Option("--tuned/--untuned", help="Use the choices that `farm tune` found on the device.")
]


group = typer.Typer(
    name="networks",
    help="List the built-in networks and single operations with their inputs, outputs and sizes; `check` tells what "
    "stands in the way of a model of your own.\n\nExample: `farm networks --json`, `farm networks check model.onnx`",
    invoke_without_command=True,
)


def register(app: typer.Typer) -> None:
    group.command()(model_check.check)
    app.add_typer(group, rich_help_panel=PANEL)
    app.command(rich_help_panel=PANEL)(with_compiler_options(plan))
    app.command(rich_help_panel=PANEL)(with_compiler_options(infer))


@group.callback()
def networks(context: typer.Context, as_json: JsonOption = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from kernels.frontend.networks import BUILT_IN

    rows = [_network(name, build(None)) for name, build in BUILT_IN.items()]
    if as_json:
        print_json(rows)
        return
    from orchestrator.report.listing import Head, Listing

    shown = []
    for row in rows:
        shapes = [", ".join(map(_shape, row[port].values())) for port in ("inputs", "outputs")]
        shown.append((row["name"], *shapes, str(row["nodes"]), f"{row['parameters'] / 1e6:.2f} M"))
    out().print(Listing(("network", "input", "output", Head("nodes", True), Head("parameters", True)), shown))


def _network(name: str, graph: Graph) -> dict[str, Any]:
    from kernels.frontend.load import sizes_of

    return {
        "name": name,
        "sizes": sizes_of(name),
        "inputs": {port: graph.shapes[port] for port in graph.inputs},
        "outputs": {port: graph.shapes[port] for port in graph.outputs},
        "nodes": len(graph.nodes),
        "parameters": int(sum(constant.size for constant in graph.constants.values())),
    }


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def plan(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write the plan to.")],
    options: Options,
    model: ModelArgument = None,
    network: NetworkOption = None,
    seed: SeedOption = 1,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="SERIAL",
            help="Device of the running farm whose limits the plan must keep.",
            autocompletion=completion.serials,
        ),
    ] = None,
    tuned: TunedOption = True,
    check: Annotated[
        bool, typer.Option("--check", help="Run an OpenCL plan on this workstation and compare its outputs.")
    ] = False,
    memory_plot: Annotated[
        Path | None,
        typer.Option(
            "--memory-plot", metavar="FILE", help="Draw the memory over the steps of the plan into a .svg or .png file."
        ),
    ] = None,
    savings: Annotated[
        bool, typer.Option("--savings", help="Compile again with fewer ways to save memory, and print what each saves.")
    ] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a model and write the plan that the agent would run: plan.json, weights, kernel sources.

    Without `--device`, limits of a device are not checked. `--check` needs neither a phone nor the agent; its exit
    status is 1 if an output is wrong.

    Example: `farm plan squeezenet.onnx -o plan --backend vulkan --precision fp16`
    """
    from kernels.compile import compile_graph

    limits = Limits()
    graph = load_graph(model, network, seed)
    if device is not None:
        from workers.plans.compiler_options import limits_of
        from workers.plans.tuned_choices import TunedChoices

        facts = _facts_of(state, device)
        limits = limits_of(facts, Api(options.backend), Precision(options.precision))
        if tuned:
            options = TunedChoices(settings_of(state).state).options(options, limits, facts, lambda: graph)
    bundle = compile_graph(graph, options, limits)
    bundle.write(output)
    checked = plan_check.check_plan(bundle, graph, seed) if check else None
    from . import plan_memory
    from .plan_summary import as_data, render

    saved = plan_memory.saved(graph, options, limits) if savings else []
    if memory_plot is not None:
        plan_memory.draw(bundle.plan, memory_plot)
    if as_json:
        more: dict[str, Any] = {"check": checked.as_data()} if checked else {}
        more |= {"savings": plan_memory.as_data(saved)} if savings else {}
        print_json({"folder": output, **as_data(bundle.plan), **more})
    else:
        out().print(render(bundle.plan))
        if savings:
            out().print("", plan_memory.render(saved))
        log().print(f"written to {output}")
        if checked:
            out().print(plan_check.render(checked))
    if checked and not checked.ok:
        raise typer.Exit(1)


def load_graph(model: Path | None, network: str | None, seed: int) -> Graph:
    """The graph that a command was given. Raises UsageError for both or neither, and the compiler's errors."""
    from kernels.frontend.load import load_workload

    if (model is None) == (network is None):
        raise typer.BadParameter("give either a MODEL.onnx or --network NAME (`farm networks` lists them)")
    return load_workload(network=network, onnx=model, seed=seed)


def _facts_of(state: Path | None, serial: str) -> DeviceFacts:
    from .farm_access import open_inventory

    found = {device.serial: device for device in open_inventory(settings_of(state)).devices()}
    if serial not in found:
        raise Unsupported(f"no device {serial!r}; there are: {', '.join(found) or 'none'}", remedy="farm devices")
    return found[serial].facts


def infer(
    *,
    options: Options,
    model: ModelArgument = None,
    network: NetworkOption = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="X.npy", help="Input; seeded random numbers without it.")
    ] = None,
    device: DeviceOption = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", metavar="DIR", help="Write each node's output as DIR/<output name>.npy.")
    ] = None,
    outputs: Annotated[
        Path | None,
        typer.Option("--outputs", metavar="DIR", help="Write the model's outputs as DIR/<output name>.npy."),
    ] = None,
    seed: SeedOption = 1,
    tuned: TunedOption = True,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one inference outside the queue, and show what it took: set-up steps, time, memory, device, driver.

    With `--dump` nothing is fused, and every node's output is written in fp32, in the model's own shape and layout;
    `DIR/index.json` says which file holds which tensor.

    Example: `farm infer squeezenet.onnx --input cat.npy --backend vulkan --dump tensors`
    """
    from kernels.frontend.load import load_inputs, random_inputs
    from workers.infer import infer as run_inference

    graph = load_graph(model, network, seed)
    inputs = random_inputs(graph, seed) if input_file is None else load_inputs(graph, input_file)
    options = replace(options, keep_all=dump is not None)
    with _spinner() as progress:
        task = progress.add_task("starting")
        result = run_inference(
            device=device, graph=graph, inputs=inputs, options=options, settings=settings_of(state),
            tuned=tuned, report=lambda phase, *_: progress.update(task, description=phase),
        )  # fmt: skip
    from . import inference

    written = {} if dump is None else inference.write_tensors(dump, result.outputs)
    if outputs is not None:
        written |= inference.write_tensors(outputs, {name: result.outputs[name] for name in graph.outputs})
    facts = inference.as_data(result, graph.outputs, written)
    if as_json:
        print_json(facts)
    else:
        out().print(inference.render(facts))
        for folder in filter(None, (dump, outputs)):
            log().print(f"tensors written to {escape(str(folder))}")


def _spinner() -> Progress:
    return Progress(SpinnerColumn(), TextColumn("{task.description}"), console=log(), transient=True)
