"""Tuning on a real device (PoCL), and plans that use what it found."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from kernels.frontend.load import load_workload, random_inputs
from kernels.ir.graph import Graph
from kernels.options import Choice, Options
from kernels.reference import evaluate
from kernels.tuning import Database, Exhaustive, Found, Measure, Progress, Strategy
from kernels.tuning.strategies import Timing
from orchestrator.model.device import Api
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from orchestrator.model.live.announcement import Phase
from orchestrator.system.config import Settings
from virtual_phones.faults import PowerButton, Unplug
from workers.devices.fleet import Member
from workers.engines.models import Arrays
from workers.engines.pocketfarm.measure import Block, Measurement, measure
from workers.engines.pocketfarm.plans.compiler_options import options_of
from workers.engines.pocketfarm.plans.plan_store import Plans, StoredPlan
from workers.engines.pocketfarm.plans.tuned_choices import FILE
from workers.infer import find_member, infer
from workers.tuning.tune_device import Tuned, tune_on

from .conftest import Wiring

OTHER = Choice("direct", "2x1x4")
"""A choice that the compiler does not take on its own."""


@dataclass(frozen=True)
class First:
    """A search of so few candidates that a test can compile them."""

    count: int

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        return Exhaustive(2).search(choices[: self.count], measure)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_workload(network="lenet", onnx=None, seed=1)


@pytest.fixture(autouse=True)
def _few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tuning.plan_comparison.PAIRS", 2)


def tuned(
    graph: Graph, settings: Settings, device: str | None = None, steps: list[Progress] | None = None,
    budget_s: float | None = None,
    began: float | None = None,
) -> Tuned:  # fmt: skip
    def strategy(seconds: float) -> Strategy:
        return First(2)

    return tune_on(
        device=device, graph=graph, options=Options("opencl"), settings=settings, strategy=strategy,
        budget_s=budget_s, began=began, on_progress=[].append if steps is None else steps.append,
    )  # fmt: skip


def test_tune_use_resume(graph: Graph, settings: Settings) -> None:
    nothing = tuned(graph, settings, budget_s=3600.0, began=time.monotonic() - 3600)  # it began then
    assert (nothing.searched, nothing.left, nothing.verdict.kept) == ((), 4, ())
    steps: list[Progress] = []
    result = tuned(graph, settings, steps=steps, budget_s=1e6)
    assert (result.left, result.verdict.undecided) == (0, ())
    assert len(result.searched) == 4 and (steps[-1].done, steps[-1].total) == (4, 4)
    assert {found.conv for found in result.choices} == set(result.searched)
    assert all(found.ms > 0 and found.default_ms and found.failed == 0 for found in result.choices)
    assert not result.verdict.wrong
    device = find_member(None, Api.OPENCL, settings).facts
    facts = device.api(Api.OPENCL)
    assert facts and facts.device_name in result.key and facts.driver in result.key
    left = list((settings.state / "devices" / "local-cpu" / "plans").iterdir())
    assert len(left) <= 1 + len(result.verdict.comparisons), "the networks that were compared; no trial plan stays"

    again = tuned(graph, settings)
    assert again.searched == () and again.key == result.key
    kept = {found.conv for found in again.choices if found.kept}
    assert kept == set(again.verdict.kept)

    first, second = convolutions(result)
    cell = Cell(workload=Workload(network="lenet"), backend=Api.OPENCL, options={"algorithm": "auto"})
    untuned = cell.model_copy(update={"options": {"algorithm": "auto", "tuned": False}})
    named = cell.model_copy(update={"options": {"algorithm": "direct"}})
    assert options_of(untuned).tuned == {}
    plans = Plans(settings.state)
    force(settings, result, {first: None, second: None})
    plain = plans.plan(untuned, device)
    assert plans.plan(cell, device).plan_hash == plain.plan_hash
    force(settings, result, {first: OTHER, second: None})
    chosen = plans.plan(cell, device)
    assert chosen.plan_hash != plain.plan_hash and chosen.folder != plain.folder
    words = [value for key, value in chosen.plan.options.items() if key.startswith("algorithm:")]
    assert words.count(OTHER.words) == 1
    assert plans.plan(untuned, device).plan_hash == plain.plan_hash
    assert plans.plan(named, device).plan_hash == Plans(settings.state).plan(named, device).plan_hash
    assert OTHER.words not in plans.plan(named, device).plan.options.values()

    inputs = random_inputs(graph, 9)
    for use in (True, False):
        (ran,) = infer(
            device=None, work=[(graph, inputs)], options=Options("opencl"), settings=settings, tuned=use
        )  # fmt: skip
        assert (OTHER.words in ran.plan.options.values()) == use
        for name, array in evaluate(graph, inputs).items():
            np.testing.assert_allclose(ran.outputs[name], array, atol=1e-4 * float(np.abs(array).max()), rtol=0)


def convolutions(result: Tuned) -> list[str]:
    return [found.conv for found in result.choices if found.conv.startswith("conv")]


def force(settings: Settings, result: Tuned, wanted: dict[str, Choice | None]) -> None:
    """Put choices into the database as if they had been found; None, and of others: the compiler's own."""
    database = Database(settings.state / FILE)
    for conv, choice in {**{found.conv: None for found in result.choices}, **wanted}.items():
        old = database.get(result.key, "fp32", conv)
        assert old is not None
        fresh = {**old.model_dump(), **vars(choice or Choice.of(old.default)), "kept": True, "at": old.at + 1}
        database.add(Found.model_validate(fresh))
    database.save()


def test_an_unproven_choice_is_compared_before_it_is_used(graph: Graph, settings: Settings) -> None:
    result = tuned(graph, settings)
    force(settings, result, dict.fromkeys(convolutions(result), OTHER))
    path = settings.state / FILE
    unproven = [{**each, "kept": None} for each in json.loads(path.read_text())]
    path.write_text(json.dumps(unproven))
    plans, device = Plans(settings.state), find_member(None, Api.OPENCL, settings).facts
    cell = Cell(workload=Workload(network="lenet"), backend=Api.OPENCL)
    assert OTHER.words not in plans.plan(cell, device).plan.options.values()
    verdict = tuned(graph, settings).verdict
    assert verdict.comparisons[0].choices == 2 and not verdict.wrong
    assert set(verdict.kept) | set(verdict.dropped) == set(convolutions(result))
    words = list(plans.plan(cell, device).plan.options.values())
    assert words.count(OTHER.words) == len(verdict.kept)


def test_on_a_phone(graph: Graph, lab: Wiring, lab_settings: Settings) -> None:
    result = tuned(graph, lab_settings, device=lab.serial)
    assert result.device.serial == lab.serial and len(result.searched) == 4
    assert (lab_settings.state / FILE).is_file()


def on_threads(graph: Graph, settings: Settings, threads: int, device: str | None = None) -> Tuned:
    return tune_on(
        device=device, graph=graph, options=Options("cpu", threads=threads), settings=settings,
        strategy=lambda _: Exhaustive(2),
    )  # fmt: skip


def test_the_cpu_is_tuned_for_a_number_of_threads(graph: Graph, settings: Settings) -> None:
    found = {threads: on_threads(graph, settings, threads) for threads in (1, 2)}
    for threads, result in found.items():
        assert len(result.searched) == 2 and not result.verdict.wrong
        assert result.key.startswith("cpu | ") and result.key.endswith(f" | {threads} thread{'s' * (threads > 1)}")
        assert all(each.ms > 0 and each.tried >= 3 and each.failed == 0 for each in result.choices)
    assert on_threads(graph, settings, 2).searched == ()

    other = Choice("im2col")
    first = convolutions(found[1])[0]
    force(settings, found[1], {first: other})
    force(settings, found[2], {})
    plans, device = Plans(settings.state), find_member(None, Api.CPU, settings).facts
    for threads in (1, 2):
        cell = Cell(workload=Workload(network="lenet"), backend=Api.CPU, options={"threads": threads})
        assert (other.words in plans.plan(cell, device).plan.options.values()) == (threads == 1)
        inputs = random_inputs(graph, 9)
        options = Options("cpu", threads=threads)
        (ran,) = infer(device=None, work=[(graph, inputs)], options=options, settings=settings)
        assert (other.words in ran.plan.options.values()) == (threads == 1) and ran.runs_on.threads == threads
        for name, array in evaluate(graph, inputs).items():
            np.testing.assert_allclose(ran.outputs[name], array, atol=1e-4 * float(np.abs(array).max()), rtol=0)


def test_the_cpu_of_a_phone(graph: Graph, lab: Wiring, lab_settings: Settings) -> None:
    result = on_threads(graph, lab_settings, 0, device=lab.serial)
    facts = result.device
    assert facts.serial == lab.serial and len(result.searched) == 2 and not result.verdict.wrong
    assert result.key.startswith(f"cpu | {facts.soc} | ") and f" | {facts.cores} thread" in result.key


def test_a_run_during_which_the_phone_slept_is_made_again(
    graph: Graph, lab: Wiring, lab_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[str, float]] = []
    helpers: list[threading.Thread] = []

    def press(phase: Phase, *_: object) -> None:
        if phase == "running" and not helpers:
            lab.phones.control.fault(lab.serial, PowerButton())
            lab.phones.control.fault(lab.serial, Unplug(seconds=2.0))
            helpers.append(threading.Thread(target=lab.connect))
            helpers[0].start()

    def measured(member: Member, stored: StoredPlan, inputs: Arrays, block: Block, check: Any, _: Any) -> Measurement:
        """Measure as ever; but in the first run the phone rests for a while, and somebody presses its power button."""
        block = block if runs else replace(block, idle_s=2.0)
        done = measure(member, stored, inputs, block, check, press)
        runs.append((stored.plan_hash, done.run.suspended_s or 0.0))
        return done

    monkeypatch.setattr("workers.tuning.bench.measure", measured)
    result = tuned(graph, lab_settings, device=lab.serial)
    helpers[0].join()
    (plan, slept_s), (again, awake_s), *_ = runs
    assert plan == again and slept_s > 0.5 and awake_s < 1e-3
    assert len(result.searched) == 4 and all(each.failed == 0 for each in result.choices), "no candidate is to blame"
