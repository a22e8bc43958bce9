"""The order of a device's blocks: every block once, no drift on one cell alone, canaries where they belong."""

from __future__ import annotations

from collections import Counter
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.model.device import Api, Precision
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import DeviceChoice, Experiment, Matrix, Sampling, Workload
from orchestrator.model.job import Cell
from orchestrator.spec.expansion import run_order
from orchestrator.spec.expansion.expand import expand, size
from orchestrator.spec.expansion.run_order import Place, Slot

from . import make

ORDERS = st.sampled_from(["interleaved", "random", "abba"])
SERIALS = "ABC"


@st.composite
def places(draw: st.DrawFn) -> list[Place]:
    """Cells of several devices, each device with its own choice of them; some for whichever is free."""
    cells = [Cell(workload=Workload(network=f"n{i}"), backend=Api.OPENCL) for i in range(draw(st.integers(1, 6)))]
    choices = [(serial,) for serial in SERIALS] + [tuple(SERIALS)]
    return [(cell, choice) for cell in cells for choice in draw(st.sets(st.sampled_from(choices), min_size=1))]


def of(slots: list[Slot], who: tuple[str, ...]) -> list[Slot]:
    return [slot for slot in slots if slot.candidates == who]


@given(places(), st.integers(1, 7), ORDERS)
def test_every_block_once_and_rounds_are_whole(found: list[Place], rounds: int, order: run_order.Order) -> None:
    slots = run_order.arrange(found, range(rounds), order, "e-1")
    wanted = Counter((cell.cell_id, who, block) for cell, who in found for block in range(rounds))
    assert Counter((slot.cell.cell_id, slot.candidates, slot.block) for slot in slots) == wanted
    assert [slot.block for slot in slots] == sorted(slot.block for slot in slots)


@given(places(), st.integers(1, 5), ORDERS, st.data())
def test_what_may_crash_comes_when_all_others_are_over(
    found: list[Place], rounds: int, order: run_order.Order, data: st.DataObject
) -> None:
    """Both parts are ordered as they are alone."""
    names = sorted({str(cell.workload.network) for cell, _ in found})
    last = {"network": data.draw(st.lists(st.sampled_from(names), min_size=1)), "backend": [Api.OPENCL]}
    slots = run_order.arrange(found, range(rounds), order, "e-1", last)
    parts = [
        [place for place in found if (place[0].workload.network in last["network"]) is late] for late in (False, True)
    ]
    assert slots == [slot for part in parts for slot in run_order.arrange(part, range(rounds), order, "e-1")]
    none, plain = {**last, "backend": [Api.CPU]}, run_order.arrange(found, range(rounds), order, "e-1")
    assert run_order.arrange(found, range(rounds), order, "e-1", none) == plain


@given(places(), st.integers(1, 4))
def test_abba_puts_every_cell_of_a_device_at_the_same_mean_position(found: list[Place], pairs: int) -> None:
    slots = run_order.arrange(found, range(2 * pairs), "abba", "e-1")
    for who in {slot.candidates for slot in slots}:
        positions: dict[str, list[int]] = {}
        for position, slot in enumerate(of(slots, who)):
            positions.setdefault(slot.cell.cell_id, []).append(position)
        assert len({mean(found) for found in positions.values()}) == 1


@given(places(), st.text(max_size=5))
def test_a_random_order_is_its_seeds(found: list[Place], seed: str) -> None:
    again = [run_order.arrange(found, range(3), "random", seed) for _ in range(2)]
    assert again[0] == again[1]


def test_random_orders_differ_by_round_device_and_experiment() -> None:
    cells = [Cell(workload=Workload(network=f"n{i}"), backend=Api.OPENCL) for i in range(6)]
    found: list[Place] = [(cell, (serial,)) for cell in cells for serial in SERIALS]
    slots = run_order.arrange(found, range(20), "random", "e-1")
    assert slots != run_order.arrange(found, range(20), "random", "e-2")
    orders = {
        tuple(slot.cell.label for slot in of(slots, (serial,)) if slot.block == number)
        for serial in SERIALS
        for number in range(20)
    }
    assert len(orders) > 50  # 60 rounds, each a fresh one of 720 orders
    first = Counter(slot.cell.label for slots_of in [of(slots, (s,)) for s in SERIALS] for slot in slots_of[::6])
    assert len(first) == 6 and max(first.values()) < 30  # no cell always leads


@settings(deadline=None)
@given(places(), st.integers(1, 5), st.integers(1, 9), ORDERS)
def test_canaries_stand_first_last_and_after_so_many_blocks(
    found: list[Place], rounds: int, every: int, order: run_order.Order
) -> None:
    plain = run_order.arrange(found, range(rounds), order, "e-1")
    references = {serial: run_order.canary_cell(Api.OPENCL, Precision.FP32) for serial in SERIALS}
    slots = run_order.with_canaries(plain, every, references)
    assert [slot for slot in slots if slot.role == "work"] == plain
    for who in {slot.candidates for slot in plain}:
        roles = [slot.role for slot in of(slots, who)]
        if len(who) > 1:
            assert set(roles) == {"work"}
            continue
        assert roles[0] == roles[-1] == "canary"
        gaps = "".join("c" if role == "canary" else "w" for role in roles).strip("c").split("c")
        assert all(len(gap) == every for gap in gaps[:-1]) and 1 <= len(gaps[-1]) <= every
        own = [slot for slot in of(slots, who) if slot.role == "canary"]
        assert [slot.block for slot in own] == list(range(run_order.canaries(roles.count("work"), every)))
        assert len({slot.cell.cell_id for slot in own}) == 1


def test_no_canaries_unless_asked() -> None:
    assert run_order.canaries(10, 0) == run_order.canaries(0, 5) == 0


def planned(**sampling: object) -> Experiment:
    axes = Matrix(network=("lenet", "cifar10_quick"), backend=(Api.VULKAN, Api.OPENCL))
    return make.experiment(matrix=axes, sampling=Sampling(**sampling))


def test_an_experiments_canaries_are_alike_and_cost_little() -> None:
    experiment = planned(blocks=4, canary=3, samples=500, idle=20, load=30, deadline=90)
    devices = [make.device("A", make.api(Api.OPENCL), make.api(Api.VULKAN)), make.device("B")]
    jobs = expand(experiment, "e-1", devices).jobs
    canaries = [job for job in jobs if job.role == "canary"]
    assert Counter(job.candidates[0] for job in canaries) == {"A": 1 + 6, "B": 1 + 3}
    assert {(job.candidates[0], job.cell.label) for job in canaries} == {
        ("A", "cifar10_quick vulkan fp32"),
        ("B", "cifar10_quick opencl fp32"),
    }
    assert {(job.sampling.load, job.sampling.idle, job.sampling.samples) for job in canaries} == {(0.0, 0.0, 20)}
    assert {job.measure.quantities for job in canaries} == {("latency", "memory")}
    assert len({job.job_id for job in jobs}) == len(jobs)
    assert size(experiment) == len([job for job in jobs if job.candidates == ("A",)])


def test_one_job_of_each_device_is_held() -> None:
    expansion = expand(planned(blocks=3, target_interval=0.05), "e-1", [make.device("A"), make.device("B")])
    assert {job.block for job in expansion.reserve} == {3} and [job.candidates for job in expansion.reserve] == [
        ("A",),
        ("B",),
    ]
    assert not {job.job_id for job in expansion.reserve} & {job.job_id for job in expansion.jobs}
    at_the_cap = planned(blocks=3, target_interval=0.05, max_blocks=3)
    assert expand(at_the_cap, "e-1", [make.device("A")]).reserve == ()


@pytest.mark.parametrize("sampling", [{"canary": 2}, {"target_interval": 0.05}])
def test_what_goes_by_device_is_refused_where_nobody_knows_the_device(sampling: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"sampling.{next(iter(sampling))}.*goes by device"):
        make.experiment(sampling=Sampling(**sampling), devices=DeviceChoice(count="any"))


@pytest.mark.parametrize(
    ("sampling", "complaint"),
    [
        ({"mode": "cold", "warmup": 2}, "no warm-up and one inference"),
        ({"mode": "cold", "samples": 5}, "no warm-up and one inference"),
        ({"mode": "cold", "load": 5}, "leave out `warmup_stable` and `load`"),
        ({"mode": "sustained", "deadline": 600}, "needs `load`"),
        ({"mode": "sustained", "load": 570, "deadline": 600}, "at least 657 s, and is 600 s"),
        ({"idle": 60, "deadline": 120}, "its deadline is 120 s"),
    ],
)
def test_modes_refuse_nonsense(sampling: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Sampling(**sampling)


def test_a_cold_block_is_one_inference() -> None:
    cold = Sampling(mode="cold")
    assert (cold.warmup, cold.samples) == (0, 1)
    assert Sampling.model_validate_json(cold.model_dump_json()) == cold


def test_spec_errors_of_the_design_tell_their_place() -> None:
    from orchestrator import spec

    with pytest.raises(SpecError, match=r"x:3:.*sampling: mode `cold` has no warm-up"):
        spec.parse("name: x\nworkload: {network: lenet}\nsampling: {mode: cold, warmup: 2}\n", "x")
