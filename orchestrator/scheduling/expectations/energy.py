"""The energy of an experiment's inferences on each device beside the others, learnt from blocks that have ended, for
policies that ask."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

SWEEPS = 20
"""The sweeps of the fit; it is exact after one where every device was measured in every cell."""


def expected_energy(
    known_j: Mapping[tuple[str, str], Mapping[str, Sequence[float]]], models: Mapping[str, str]
) -> dict[str, float]:
    """Serial -> share of what the mean device takes: 0.5 is half as much.

    Joules are fitted as a cell's times a device's, by least squares of their logarithms, over the cells that several
    devices measured: a large cell counts as a small one does, and what one device measured alone does not count.

    `known_j`: (cell, kind of figure) -> serial -> joules of an inference; `models`: serial -> model, of the devices
    that are asked for. A device that was not measured counts as the mean of its model, else as 1.
    """
    cells = []
    for by_serial in known_j.values():
        means = {serial: mean(joules) for serial, joules in by_serial.items()}
        logs = {serial: math.log(joules) for serial, joules in means.items() if joules > 0}
        if len(logs) > 1:
            cells.append(logs)
    fitted = dict.fromkeys((serial for logs in cells for serial in logs), 0.0)
    for _ in range(SWEEPS):
        left: dict[str, list[float]] = defaultdict(list)
        for logs in cells:
            of_cell = mean(log - fitted[serial] for serial, log in logs.items())
            for serial, log in logs.items():
                left[serial].append(log - of_cell)
        fitted = {serial: mean(each) for serial, each in left.items()}
    own = {serial: math.exp(each) for serial, each in fitted.items()}
    of_model: dict[str, list[float]] = defaultdict(list)
    for serial, share in own.items():
        if models.get(serial):
            of_model[models[serial]].append(share)
    return {serial: own.get(serial, mean(of_model.get(model) or [1.0])) for serial, model in models.items()}
