"""One inference outside the queue, on this host or on a phone of its adb server. Needs neither Redis nor a ledger."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.ir.types import as_type
from kernels.options import Options
from kernels.plan.model import Bundle, Plan
from orchestrator.model.device import Api, DeviceFacts, Precision
from orchestrator.model.errors import DeviceSick, TransportLost, Unsupported
from orchestrator.model.event import Memory, Sample, Setup
from orchestrator.model.record import RunsOn
from orchestrator.system.config import Settings

from .devices.device_lock import device_lock
from .devices.fleet import Member
from .devices.workstation import CPU_SERIAL, enrol_workstation
from .engines import Report, runs_on
from .engines.agent import raise_for
from .engines.models import Arrays
from .engines.pocketfarm.measure import Block, Measurement, measure
from .engines.pocketfarm.measure.ports import STATE
from .engines.pocketfarm.measure.replan import run_within_limits
from .engines.pocketfarm.plans.compiler_options import limits_of
from .engines.pocketfarm.plans.kernel_limits import KernelLimits
from .engines.pocketfarm.plans.plan_store import StoredPlan, store
from .engines.pocketfarm.plans.tuned_choices import TunedChoices
from .session.session import Session, session

if TYPE_CHECKING:
    from .engines.pocketfarm.kept_state import KeptState

log = logging.getLogger(__name__)
LOCK_WAIT_S = 2.0


@dataclass(frozen=True)
class InferResult:
    """Outputs by name (the model's own shapes and types), and what it took."""

    outputs: dict[str, npt.NDArray[Any]]
    plan: Plan
    device: DeviceFacts
    runs_on: RunsOn
    setup: tuple[Setup, ...]
    sample: Sample
    memory: Memory | None
    checkpoint: bytes = b""
    """The variables that a text has left, where they are kept."""


def infer(
    *,
    device: str | None,
    work: Sequence[tuple[Graph, Arrays]],
    options: Options,
    settings: Settings,
    tuned: bool = True,
    deadline_s: float = 600.0,
    compiler: Callable[..., Bundle] = compile_graph,
    generate: int = 0,
    before: KeptState | None = None,
    keeps_state: bool = False,
    report: Report = lambda *_: None,
) -> list[InferResult]:
    """Run each graph of `work` once with its inputs, and fetch the outputs (with `options.keep_all`: of every node).

    `device`: a serial or an adb address; None: this host. `tuned`: with what tuning found there. `generate`: tokens
    behind a text, of a plan that the `compiler` makes of a decoder's step; `before`: the state with the text's first
    tokens; `keeps_state`: what the answer leaves is the result's `checkpoint`. A graph is compiled once; anew within
    its limit where the driver refuses a kernel's work-group, as in a job. Raises DeviceBusy where a session holds it,
    Unsupported, AgentFault, the transient errors, and those of the compiler.
    """
    api, precision = Api(options.backend), Precision(options.precision)
    member = find_member(device, api, settings)
    known, cache = KernelLimits(settings.state), settings.state / "cache" / "spirv"
    plans: dict[int, StoredPlan] = {}
    block = Block(
        "infer/1", warmup=0, samples=1, deadline_s=deadline_s, threads=options.threads, generate=generate,
        context=len(before.tokens) if before else 0, keeps_state=keeps_state,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="pocketfarm-plan-") as temporary:

        def compile_within(graph: Graph) -> None:
            report("compiling", 0, 0, None)
            limits = replace(limits_of(member.facts, api, precision), kernel_groups=known.of(member.facts, api))
            own = options
            if tuned:
                own = TunedChoices(settings.state).options(options, limits, member.facts, lambda: graph)
            bundle = compiler(graph, own, limits, spirv_cache=cache)
            folder = Path(temporary) / bundle.plan.plan_hash
            store(bundle, folder)
            plans[id(graph)] = StoredPlan(bundle.plan, folder, bundle.plan.plan_hash)

        def given(graph: Graph, inputs: Arrays) -> Arrays:
            if before is None:
                return inputs
            return {**inputs, STATE: np.frombuffer(before.checkpoint(plans[id(graph)].plan), np.uint8)}

        def run(graph: Graph, inputs: Arrays, held: Session) -> InferResult:
            measured = run_within_limits(
                known, member.facts, api,
                lambda: measure(member, plans[id(graph)], given(graph, inputs), block, held.check, report),
                lambda _: compile_within(graph),
            )  # fmt: skip
            return _result(measured, graph, plans[id(graph)].plan, member.facts)

        for graph in {id(graph): graph for graph, _ in work}.values():
            compile_within(graph)
        with session(member, None, settings.state, _go_on, lock_wait_s=LOCK_WAIT_S) as held:
            return [run(graph, inputs, held) for graph, inputs in work]


def find_member(serial: str | None, api: Api, settings: Settings) -> Member:
    """The named device, or this host's own: a GPU before the CPU. Raises Unsupported, TransportLost, SetupError."""
    if serial is not None and not serial.startswith("local-"):
        return _find_phone(serial, settings)
    own = {member.facts.serial: member for member, _ in enrol_workstation(settings)}
    if serial is not None:
        if serial not in own:
            raise Unsupported(f"this host has: {', '.join(own)}", device=serial)
        return own[serial]
    fitting = [member for member in own.values() if member.facts.api(api)]
    if not fitting:
        raise Unsupported(f"this host has no {api} device", remedy="`farm doctor` tells what to install")
    return min(fitting, key=lambda member: member.facts.serial == CPU_SERIAL)


def _find_phone(serial: str, settings: Settings) -> Member:
    from .connection.adb import server_of  # a workstation does without adb's client, and begins sooner
    from .devices.admit import enrol_phone
    from .devices.lookup import find_phone

    server = server_of(settings)
    server.check()
    try:
        connection = find_phone(serial, server)
    except TransportLost as e:
        own = ", ".join(member.facts.serial for member, _ in enrol_workstation(settings))
        raise TransportLost(f"{e.args[0]}; this host itself is {own}", device=serial, remedy=e.remedy) from e
    with device_lock(settings.state, connection.serial, wait_s=LOCK_WAIT_S):
        return enrol_phone(connection, settings)[0]


def _result(measured: Measurement, graph: Graph, plan: Plan, device: DeviceFacts) -> InferResult:
    raise_for(measured.run, device.serial)
    events = measured.run.events
    where = runs_on(events)
    sample = next((event for event in events if isinstance(event, Sample)), None)
    if measured.run.killed or where is None or sample is None:
        raise DeviceSick("the agent ended without a result: most likely out of memory", device=device.serial)
    return InferResult(
        outputs={name: as_type(array, graph.types[name]) for name, array in measured.outputs.items()},
        plan=plan,
        device=device,
        runs_on=where,
        setup=tuple(event for event in events if isinstance(event, Setup)),
        sample=sample,
        memory=next((event for event in reversed(events) if isinstance(event, Memory)), None),
        checkpoint=measured.checkpoint,
    )


def _go_on() -> None:
    """Outside the queue there is no lease to lose."""
