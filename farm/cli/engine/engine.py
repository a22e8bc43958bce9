"""`farm networks`, `farm plan`, `farm infer`: the compiler and the engine, outside the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn

from farm.access import settings_of
from farm.cli import completion
from farm.cli.output import HERE, Common, JsonOption, group_of, log, option, out, print_json
from kernels.options import Limits, Options
from orchestrator.model.device import Api, DeviceFacts, Precision
from orchestrator.model.errors import Unsupported

from . import model_check, plan_check
from .axis_options import with_compiler_options
from .model_options import BatchOption, ModelArgument, NetworkOption, SeedOption, SizeOption, load_graph

if TYPE_CHECKING:
    from kernels.frontend.input_file import Given
    from kernels.ir.graph import Array, Graph
    from workers.infer import InferResult

DeviceOption = Annotated[
    str | None,
    option(
        "--device, -d SERIAL",
        "Device that runs it.",
        show_default="this workstation",
        autocompletion=completion.serials,
    ),
]
TunedOption = Annotated[bool, option("--tuned/--untuned", "Use the choices that `farm tune` found on the device.")]


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


@with_compiler_options()
def plan(
    *,
    options: Options,
    model: ModelArgument = None,
    output: Annotated[
        Path | None, option("--output, -o DIR", "Folder to write the plan to.", show_default="none")
    ] = None,
    network: NetworkOption = None,
    seed: SeedOption = 1,
    size: SizeOption = None,
    batch: BatchOption = None,
    device: Annotated[
        str | None,
        option(
            "--device, -d SERIAL",
            "Device of the running farm whose limits the plan must keep.",
            autocompletion=completion.serials,
        ),
    ] = None,
    tuned: TunedOption = True,
    check: Annotated[
        bool, option("--check", "Run an OpenCL plan on this workstation and compare its outputs.")
    ] = False,
    memory_plot: Annotated[
        Path | None,
        option("--memory-plot FILE", "Draw the memory over the steps of the plan into a .svg or .png file."),
    ] = None,
    savings: Annotated[
        bool, option("--savings", "Compile again with fewer ways to save memory, and print what each saves.")
    ] = False,
    common: Common = HERE,
) -> None:
    """Compile a model and print what its plan needs; with `--output`, write the plan that the agent would run:
    plan.json, weights, kernel sources.

    Without `--device`, limits of a device are not checked. `--check` needs neither a phone nor the agent; its exit
    status is 1 if an output is wrong.

    Example: `farm plan squeezenet.onnx -o plan --backend vulkan --precision fp16`
    """
    from kernels.compile import compile_graph

    limits = Limits()
    graph = load_graph(model, network, seed, size, batch)
    if device is not None:
        from workers.engines.pocketfarm.plans.compiler_options import limits_of
        from workers.engines.pocketfarm.plans.tuned_choices import TunedChoices

        facts = _facts_of(common.state, device)
        limits = limits_of(facts, Api(options.backend), Precision(options.precision))
        if tuned:
            options = TunedChoices(settings_of(common.state).state).options(options, limits, facts, lambda: graph)
    bundle = compile_graph(graph, options, limits)
    if output is not None:
        bundle.write(output)
    checked = plan_check.check_plan(bundle, graph, seed) if check else None
    from . import plan_memory
    from .plan_summary import as_data, render

    saved = plan_memory.saved(graph, options, limits) if savings else []
    if memory_plot is not None:
        plan_memory.draw(bundle.plan, memory_plot)
    if common.as_json:
        more: dict[str, Any] = {"check": checked.as_data()} if checked else {}
        more |= {"savings": plan_memory.as_data(saved)} if savings else {}
        print_json({"folder": output, **as_data(bundle.plan), **more})
    else:
        out().print(render(bundle.plan))
        if savings:
            out().print("", plan_memory.render(saved))
        if output is not None:
            log().print(f"written to {output}")
        if checked:
            out().print(plan_check.render(checked))
    if checked and not checked.ok:
        raise typer.Exit(1)


def _facts_of(state: Path | None, serial: str) -> DeviceFacts:
    from farm.access import open_inventory

    found = {device.serial: device for device in open_inventory(settings_of(state)).devices()}
    if serial not in found:
        raise Unsupported(f"no device {serial!r}; there are: {', '.join(found) or 'none'}", remedy="farm devices")
    return found[serial].facts


@with_compiler_options()
def infer(
    *,
    options: Options,
    model: ModelArgument = None,
    network: NetworkOption = None,
    input_files: Annotated[
        list[Path] | None,
        option(
            "--input, -i X.npy|X.npz",
            "Input, by name in a .npz; may be given again: each is run. Seeded random numbers without it.",
            show_default=False,
        ),
    ] = None,
    size: SizeOption = None,
    batch: BatchOption = None,
    device: DeviceOption = None,
    dump: Annotated[Path | None, option("--dump DIR", "Write each node's output as DIR/<output name>.npy.")] = None,
    outputs: Annotated[
        Path | None, option("--outputs DIR", "Write the model's outputs as DIR/<output name>.npy.")
    ] = None,
    language_model: Annotated[
        Path | None, option("--language-model M", "Decoder that generates, with its cache.", show_default=False)
    ] = None,
    tokens: Annotated[
        Path | None, option("--tokens FILE", "Numbers of its prompt's tokens: .npy or text.", show_default=False)
    ] = None,
    text: Annotated[
        Path | None, option("--text FILE", "Its prompt, for the model's own tokenizer.", show_default=False)
    ] = None,
    perplexity: Annotated[
        bool, option("--perplexity", "Tell the perplexity of the prompt, and generate nothing.")
    ] = False,
    generate: Annotated[int, option("--generate N", "Tokens that it generates.", min=1, max=1_000_000)] = 16,
    check: Annotated[
        bool, option("--check", "Hold each generated token against the NumPy reference, as jobs do.")
    ] = False,
    load_state: Annotated[
        Path | None, option("--load-state S", "What it has taken before its prompt.", show_default=False)
    ] = None,
    save_state: Annotated[
        Path | None, option("--save-state S", "Keep what it takes, all but the last token.", show_default=False)
    ] = None,
    seed: SeedOption = 1,
    tuned: TunedOption = True,
    common: Common = HERE,
) -> None:
    """Run one inference an input outside the queue, and show what it took: set-up, time, memory, device, driver.

    Sizes that the file leaves open are those of the input, or of `--size`. The outputs of several inputs are written
    to a folder each, named as the input's file.

    With `--dump` nothing is fused, and every node's output is written in the model's own type, shape and layout;
    `DIR/index.json` says which file holds which tensor.

    With `--language-model` the tokens that follow those of `--tokens`, or of `--text`, are generated, each the
    likeliest. `--save-state` keeps what the model has taken, and `--load-state` goes on behind it with the same tokens
    as one longer text gives: same model, backend and precision.

    Example: `farm infer squeezenet.onnx --input cat.npy --backend vulkan --dump tensors`
    """
    if language_model is not None or tokens is not None or text is not None:
        others = (model, network, input_files, size, batch, dump, outputs)
        given = tokens or text
        if language_model is None or given is None or (tokens and text) or any(others):
            raise typer.BadParameter(
                "give --language-model M with --tokens FILE or --text FILE, without other models and inputs"
            )
        if perplexity and (load_state or save_state):
            raise typer.BadParameter("--load-state and --save-state go with --generate: leave out --perplexity")
        from . import generation

        with _spinner() as progress:
            task = progress.add_task("starting")
            act = (
                generation.perplexity
                if perplexity
                else partial(
                    generation.generate, count=generate, check=check, load_state=load_state, save_state=save_state
                )
            )
            facts = act(
                language_model, given, as_text=text is not None, device=device, options=options,
                settings=settings_of(common.state), tuned=tuned,
                report=lambda phase, *_: progress.update(task, description=phase),
            )  # fmt: skip
        print_json(facts) if common.as_json else out().print(generation.render(facts))
        return
    work = _work(input_files or (), lambda given: load_graph(model, network, seed, size, batch, given), seed)
    from workers.infer import infer as run_inferences  # takes a moment, for which a model that is refused need not wait

    with _spinner() as progress:
        task = progress.add_task("starting")
        results = run_inferences(
            device=device, work=[each[1:] for each in work], options=replace(options, keep_all=dump is not None),
            settings=settings_of(common.state), tuned=tuned,
            report=lambda phase, *_: progress.update(task, description=phase),
        )  # fmt: skip
    _show([name for name, *_ in work], [graph for _, graph, _ in work], results, dump, outputs, common.as_json)


def _work(
    files: Sequence[Path], load: Callable[[Given | None], Graph], seed: int
) -> list[tuple[str, Graph, Mapping[str, Array]]]:
    """Each input's name, graph and arrays; a graph is read once for all inputs of the same shapes."""
    from kernels.frontend.input_file import Given, read_arrays
    from kernels.frontend.load import as_inputs, random_inputs

    from .inference import file_name

    if not files:
        graph = load(None)
        return [("", graph, random_inputs(graph, seed))]
    graphs: dict[Any, Graph] = {}
    work: list[tuple[str, Graph, Mapping[str, Array]]] = []
    taken: set[str] = set()
    for path in files:
        arrays = read_arrays(path)
        shapes = tuple(sorted((each, array.shape) for each, array in arrays.items()))
        if shapes not in graphs:
            graphs[shapes] = load(Given.of(arrays, path))
        work.append((file_name(path.stem, taken, ""), graphs[shapes], as_inputs(graphs[shapes], arrays, path)))
    return work


def _show(
    names: Sequence[str],
    graphs: Sequence[Graph],
    results: Sequence[InferResult],
    dump: Path | None,
    outputs: Path | None,
    as_json: bool,
) -> None:
    """Print what came of each input, and write its tensors: of several into a folder of each name."""
    from . import inference

    several = len(names) > 1
    told: list[dict[str, Any]] = []
    for name, graph, result in zip(names, graphs, results, strict=True):
        own = name if several else ""
        written = {} if dump is None else inference.write_tensors(dump / own, result.outputs)
        if outputs is not None:
            kept = {output: result.outputs[output] for output in graph.outputs}
            written |= inference.write_tensors(outputs / own, kept)
        told.append(inference.as_data(result, graph.outputs, written))
    if as_json:
        each = [{"input": name, **facts} for name, facts in zip(names, told, strict=True)]
        print_json({"inferences": each} if several else told[0])
        return
    for name, facts in zip(names, told, strict=True):
        out().print(*([f"[bold]{escape(name)}[/]"] if several else []), inference.render(facts), sep="\n")
    for folder in filter(None, (dump, outputs)):
        log().print(f"tensors written to {escape(str(folder))}")


def _spinner() -> Progress:
    return Progress(SpinnerColumn(), TextColumn("{task.description}"), console=log(), transient=True)


group = group_of(
    "networks",
    (model_check.check,),
    "List the built-in networks and single operations with their inputs, outputs and sizes; `check` tells what "
    "stands in the way of a model of your own.\n\nExample: `farm networks --json`, `farm networks check model.onnx`",
    bare=networks,
)
