"""Passes: graph -> graph, one idea a file, pure; each leaves the graph's ports and their values as they were."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from kernels.errors import checkpoint
from kernels.ir.fusion import ALL
from kernels.ir.graph import Graph
from kernels.lower.cpu.algorithms import rounds_input
from kernels.options import Options

from .channels import (
    convs_of_rows,
    join_branches,
    keep_shuffled,
    nest_concats,
    norms_of_images,
    patches_of_rows,
    sink_transposes,
)
from .channels.split_channels import split_channels
from .fold_affine import fold_affine
from .fold_pads import fold_pads
from .functions.end_layers import end_layers
from .functions.end_pools import end_pools
from .functions.fuse_activations import fuse_activations
from .functions.known_functions import known_functions
from .functions.product_factors import product_factors
from .functions.responses import responses
from .functions.sums_of_squares import differences, sums_of_squares, variances
from .fuse_maps import fuse_maps
from .fuse_residuals import fuse_residuals
from .identities import eliminate_identities
from .int8 import quantized_inputs, rounded_outputs
from .moves.compose_takes import compose_takes
from .moves.early_turns import early_turns
from .moves.image_turns import image_turns
from .moves.late_turns import late_turns
from .moves.spreads import drop_spreads
from .moves.transposes import fold_transposes, sink
from .order import order
from .patches import patches
from .rewrite import once
from .rows import (
    ATTENTION_LOCAL_BYTES,
    MOST_DEEP,
    cached_rows,
    compose_moves,
    early_slices,
    free_rows,
    fuse_attention,
    fuse_dense_endings,
    fuse_dense_joins,
    fuse_norm_endings,
    fuse_row_norms,
    rows_in_place,
)
from .unread_taps import drop_unread_taps

ENDINGS, PATCHES, HALVES = "endings", "patches", "halves"
"""Rewritings by `rows` of dense layers on a GPU: what follows them becomes a part of them; patches become their rows,
where nobody asks how convolutions are computed. Halves: matrix units may compute attention, but no more than its
products."""
_NARROW = 32
_STATISTICS = ("reduce", "global_average_pool", "map", "add", "mul")
"""Operations of which exporters write the same again, for a mean and for the variance about it."""


def _folded(graph: Graph, fuse: AbstractSet[str]) -> Graph:
    return eliminate_identities(fold_affine(graph, bias="bias" in fuse, scale="normalisation" in fuse))


def _extended(fuse: AbstractSet[str]) -> int:
    """Columns of heads whose attention does more than its products."""
    return 0 if ENDINGS not in fuse else _NARROW if HALVES in fuse else MOST_DEEP


PASSES: tuple[Callable[[Graph, AbstractSet[str]], Graph], ...] = (
    lambda graph, _: eliminate_identities(graph),  # so that neighbours see each other
    lambda graph, _: nest_concats(graph),  # one that joins the same again becomes an identity
    lambda graph, fuse: image_turns(graph) if ENDINGS in fuse else graph,  # so that these two see them
    lambda graph, fuse: patches_of_rows(graph) if PATCHES in fuse else graph,
    lambda graph, fuse: sink_transposes(graph) if ENDINGS in fuse else graph,  # they meet their inverses
    lambda graph, _: fold_transposes(
        early_turns(late_turns(compose_takes(graph)))
    ),  # may leave identities, reshapes and unread nodes
    lambda graph, _: eliminate_identities(graph),  # an unread node must not count as a reader
    lambda graph, _: variances(
        sums_of_squares(once(differences(drop_spreads(responses(graph))), _STATISTICS))
    ),  # as attention and normalisations of rows have them
    lambda graph, fuse: fuse_attention(graph, extended=_extended(fuse)) if "rows" in fuse else graph,
    lambda graph, fuse: product_factors(graph) if "elementwise" in fuse else graph,
    lambda graph, fuse: fuse_row_norms(graph, multiple=4 if ENDINGS in fuse else 1) if "rows" in fuse else graph,
    lambda graph, fuse: eliminate_identities(rows_in_place(compose_moves(graph))) if ENDINGS in fuse else graph,
    lambda graph, fuse: eliminate_identities(known_functions(graph)) if "elementwise" in fuse else graph,
    lambda graph, fuse: patches(graph) if PATCHES in fuse else graph,
    # before activations, which would stand in the way
    lambda graph, fuse: _folded(graph, fuse),
    # what they scale together is folded then
    lambda graph, fuse: _folded(join_branches(graph), fuse) if "branches" in fuse else graph,
    lambda graph, fuse: fuse_activations(sink(graph)) if "activation" in fuse else graph,
    # takes the add's activation with it
    lambda graph, fuse: fuse_residuals(graph) if "residual" in fuse else graph,
    lambda graph, fuse: eliminate_identities(fuse_dense_endings(graph)) if ENDINGS in fuse else graph,
    # sees dense layers with their biases
    lambda graph, fuse: eliminate_identities(fold_transposes(early_slices(graph))) if "rows" in fuse else graph,
    lambda graph, fuse: fuse_norm_endings(graph) if ENDINGS in fuse else graph,
    lambda graph, fuse: cached_rows(graph) if "rows" in fuse else graph,  # sees products that have nothing behind them
    # of what is left
    lambda graph, fuse: fuse_maps(graph) if "elementwise" in fuse else graph,
)
"""Passes in the order in which `optimise` applies them; the last twelve are fusions (`kernels/ir/fusion.py`)."""


def prepare(
    graph: Graph,
    options: Options,
    *,
    split: bool = False,
    largest_bytes: int = 0,
    local_bytes: int = 0,
    int8_layers: bool = True,
) -> Graph:
    """The graph that is lowered for these options. Where every node's tensor is wanted it stays as it was imported.

    `split`, `largest_bytes`: see `split_channels`. `local_bytes`, `int8_layers`: see `fused`.
    """
    whole = fused(graph, options, local_bytes=local_bytes, int8_layers=int8_layers)
    return divided(whole, options, split=split, largest_bytes=largest_bytes)


def fused(graph: Graph, options: Options, *, local_bytes: int = 0, int8_layers: bool = True) -> Graph:
    """The graph of as few nodes as these options allow, before any is divided (`divided`).

    `local_bytes`: of the device, 0: not known; rows are not fused where they are too few. `int8_layers`: layers that a
    model rounds to 8 bits run so on the CPU, in every precision.
    """
    if options.keep_all:
        return graph
    if options.precision == "int8":
        return _fused_int8(graph, options)
    few = 0 < local_bytes < ATTENTION_LOCAL_BYTES
    fuse = options.fusions - {"rows"} if few else options.fusions
    if "rows" in fuse and options.backend != "cpu":
        fuse |= {ENDINGS} if _asks(options) else {ENDINGS, PATCHES}
        fuse |= {HALVES} if options.half else set()
    if options.backend == "cpu" and int8_layers:
        graph = quantized_inputs(eliminate_identities(graph), options)
    if any(map(rounds_input, graph.nodes)):
        graph = rounded_outputs(optimise(graph, fuse=fuse - {"branches", "elementwise"}), options)
        graph = fuse_maps(graph) if "elementwise" in fuse else graph
    else:
        graph = optimise(graph, fuse=fuse, reflect=options.backend != "cpu")
    graph = end_layers(graph) if "activation" in options.fusions else graph
    if options.backend == "cpu":
        packed = options.algorithm not in ("direct", "sequential") and not any(map(rounds_input, graph.nodes))
        graph = fuse_norm_endings(graph) if "rows" in fuse else graph
        return eliminate_identities(fuse_dense_joins(graph)) if packed and "rows" in fuse else graph
    if "elementwise" in options.fusions:
        graph = end_pools(graph)
    return keep_shuffled(graph) if "concat" in options.fusions else graph


def divided(graph: Graph, options: Options, *, split: bool = False, largest_bytes: int = 0) -> Graph:
    """The graph that `fused` gave, its tensors divided for a GPU, and its nodes in their order."""
    if options.keep_all or options.backend == "cpu":
        return graph
    if options.precision != "int8":  # there each layer has a range of its own
        graph = split_channels(graph, concats=split, largest=largest_bytes // (2 if options.half else 4))
        graph = graph if _asks(options) else convs_of_rows(image_turns(graph, to_rows=True))
        graph = free_rows(graph) if options.half else norms_of_images(graph)
    return order(graph) if options.in_place else graph


def _asks(options: Options) -> bool:
    """Return whether somebody asks how convolutions are computed: then all stay convolutions."""
    return options.algorithm != "auto" or bool(options.granularity or options.pixels or options.layers)


def _fused_int8(graph: Graph, options: Options) -> Graph:
    """Roundings become the layers' own before maps take them. No layer is divided or joined: each has its own range."""
    graph = quantized_inputs(eliminate_identities(graph), options)
    graph = optimise(graph, fuse=options.fusions - {"branches", "elementwise", "rows"})
    graph = rounded_outputs(graph, options)
    graph = fuse_maps(graph) if "elementwise" in options.fusions else graph
    return end_layers(graph) if "activation" in options.fusions else graph


def optimise(graph: Graph, *, fuse: AbstractSet[str] = ALL - {"rows"}, reflect: bool = False) -> Graph:
    """Simplify a graph for execution: what does nothing goes, and what `fuse` names is fused.

    Ports keep names, order and shapes. `reflect`: the backend's convolutions can mirror their input at its edges.
    """
    for one_pass in PASSES:
        checkpoint()
        graph = one_pass(graph, fuse)
    return drop_unread_taps(fold_pads(graph, reflect=reflect) if "padding" in fuse else graph)
