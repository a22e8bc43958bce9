"""Run a plan, and plan it again where the device's driver refuses the work-group of a kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable

from orchestrator.model.device import Api, DeviceFacts
from orchestrator.model.record import Replan
from workers.engines.pocketfarm.plans.kernel_limits import KernelLimits

from . import Measurement

log = logging.getLogger(__name__)
MAX_REPLANS = 5
"""Kernels of one plan that a driver may refuse before it is given up."""


def run_within_limits(
    known: KernelLimits,
    device: DeviceFacts,
    api: Api,
    run: Callable[[], Measurement],
    replan: Callable[[Replan], None],
) -> Measurement:
    """The first run without a refusal that teaches a limit, else the last one; its error is the caller's to raise.

    `replan`: compiles what `run` runs next, within `known`. Raises what the two raise.
    """
    for _ in range(MAX_REPLANS):
        measured = run()
        refusal = measured.run.error
        learnt = known.learn(device, api, refusal) if refusal else None
        if refusal is None or learnt is None:
            return measured
        log.info("%s: %s; compiling within %d", device.serial, refusal.message, learnt.limit)
        replan(learnt)
    return run()
