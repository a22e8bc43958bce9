"""How much energy an experiment's inferences take on each device beside the others, learnt from blocks that have ended,
for policies that ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean


def expected_energy(
    known_j: Mapping[tuple[str, str], Mapping[str, Sequence[float]]], models: Mapping[str, str]
) -> dict[str, float]:
    """Serial -> share of what the mean device takes, over the cells that were measured on both: 0.5 is half as much.

    `known_j`: (cell, kind of figure) -> serial -> joules of an inference; `models`: serial -> model, of the devices
    that are asked for. A device that was not measured counts as the mean of its model, else as 1.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    for by_serial in known_j.values():
        means = {serial: mean(joules) for serial, joules in by_serial.items()}
        middle = mean(means.values())
        if middle > 0:
            for serial, joules in means.items():
                shares[serial].append(joules / middle)
    own = {serial: mean(each) for serial, each in shares.items()}
    of_model: dict[str, list[float]] = defaultdict(list)
    for serial, share in own.items():
        if models.get(serial):
            of_model[models[serial]].append(share)
    return {serial: own.get(serial, mean(of_model.get(model) or [1.0])) for serial, model in models.items()}
