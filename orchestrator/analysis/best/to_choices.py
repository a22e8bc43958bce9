"""Turn best values of layers into a choices file that a later experiment names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernels.options import LAYER_AXES
from orchestrator.model.choices import Choices, LayerChoice
from orchestrator.model.device import Precision
from orchestrator.model.errors import NotComparable

from .choice import Best
from .measured import Value


def to_choices(found: Sequence[Best], origin: str) -> Choices:
    """The fastest and the slowest value of each layer, with the layer's other axes as they were measured.

    Raises NotComparable where the groups are no layers, or a layer of one device and precision is in several groups.
    """
    layers = [_layer(one) for one in found]
    keys = [(each.device, each.layer, each.precision) for each in layers]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise NotComparable(
            f"{twice[1]} is in several groups of device {twice[0]}: a choices file has one choice for each layer and "
            "precision",
            remedy="choose one with --where, e.g. --where backend=opencl",
        )
    return Choices(origin=origin, layers=tuple(layers))


def _layer(one: Best) -> LayerChoice:
    if "layer" not in one.group:
        raise NotComparable("choices are of layers", remedy="add `layer` to --per: `--per layer,device`")
    if one.axis not in LAYER_AXES:
        raise NotComparable(
            f"a layer has no {one.axis} of its own", remedy=f"axes of layers: --axis {', '.join(LAYER_AXES)}"
        )
    best, worst = (_own({**one.group, **each.also, one.axis: each.value}) for each in (one.values[0], one.values[-1]))
    return LayerChoice(
        device=str(one.group.get("device", "*")),
        layer=str(one.group["layer"]),
        precision=_precision(one.group.get("precision")),
        best=best,
        worst=worst,
    )


def _precision(value: Value | None) -> Precision | None:
    try:
        return None if value is None else Precision(str(value))
    except ValueError as e:
        raise NotComparable(
            f"{value} is no precision of this farm, so no layer can be computed in it",
            remedy=f"leave `precision` out of --per; it has {', '.join(Precision)}",
        ) from e


def _own(columns: Mapping[str, Value]) -> dict[str, int | str]:
    found = {name: columns[name] for name in LAYER_AXES if name in columns}
    return {name: value if isinstance(value, int) else str(value) for name, value in found.items()}
