"""A resident agent: networks loaded once, requests answered until its standard input ends."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.options import Backend
from kernels.plan.model import Bundle, Pool

from .driver import TIMEOUT_S, Agent, Ended, read_events
from .phone_nodes import battery, write_nodes
from .plans import Draft, combine, vector
from .test_generation import CAPACITY, compiled


def serve(
    agent: Agent, networks: dict[str, Bundle], requests: list[Any], *options: object, **environment: str
) -> Ended:
    """Requests are objects, or lines as they are."""
    words = [str(agent.binary), "serve", *map(str, options)]
    vector(1).tofile(agent.folder / "x.bin")
    for name, bundle in networks.items():
        bundle.write(agent.folder / name)
        words += ["--plan", f"{name}={agent.folder / name}", "--input", f"{name}:x={agent.folder / 'x.bin'}"]
    lines = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in requests)
    done = subprocess.run(
        words, input=lines, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        env=agent.environment(environment),
    )  # fmt: skip
    return Ended(read_events(done.stdout), done.returncode, done.stderr)


def network(api: str, steps: int = 1) -> Bundle:
    return Draft(api, [combine("x", "x", "y")] * steps).bundle()


def test_several_networks_in_one_process(agent: Agent, api: str) -> None:
    """Loaded once, warm: set-up steps come before `ready` alone; more inferences take more time."""
    requests = [
        {"id": 0, "network": "a"},
        {"id": 1, "network": "b", "count": 30},
        *({"id": number, "network": "b", "count": 1} for number in range(2, 7)),
    ]
    ran = serve(agent, {"a": network(api), "b": network(api, 2000)}, requests, "--warmup", 2)
    assert (ran.code, ran.one("result").samples) == (0, 7)
    kinds = [event.event for event in ran.events]
    assert kinds[kinds.index("ready") :] == ["ready", *["served"] * 7, "result"]
    assert ran.one("ready").networks == ("a", "b") and len(ran.all("device")) == 2
    served = ran.all("served")
    assert [(each.id, each.status) for each in served] == [(number, "ok") for number in range(7)]
    thirty, *ones = (each.end_ns - each.start_ns for each in served[1:])
    assert thirty > 5 * min(ones) > 0, "this machine may stall in any of them, but not in all"
    assert all(before.end_ns <= after.start_ns for before, after in pairwise(served))


@pytest.mark.parametrize("backend", ["cpu", "opencl", "vulkan"])
def test_answers_of_a_language_model(agent: Agent, tmp_path: Path, seed: int, backend: Backend) -> None:
    """Each request begins anew: its prompt is the text's beginning, and its tokens have times, the first its own."""
    rng = np.random.default_rng([seed, len(backend)])
    model, bundle = compiled(tmp_path, rng, backend)
    words = [str(agent.binary), "serve", "--plan", f"m={agent.folder / 'm'}", "--warmup", "1"]
    bundle.write(agent.folder / "m")
    np.array(model.prompt, "<i8").tofile(agent.folder / "tokens.bin")
    words += ["--input", f"m:tokens={agent.folder / 'tokens.bin'}"]
    asked = [(int(rng.integers(1, len(model.prompt) + 1)), int(rng.integers(1, 12))) for _ in range(4)]
    lines = [{"id": i, "network": "m", "prompt": p, "generate": g} for i, (p, g) in enumerate(asked)]

    def run(requests: list[Any]) -> Ended:
        text = "".join(json.dumps(each) + "\n" for each in requests)
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=agent.environment({})
        )
        return Ended(read_events(done.stdout), done.returncode, done.stderr)

    served = run(lines).all("served")
    assert [(each.id, each.status, each.tokens) for each in served] == [(i, "ok", g) for i, (_, g) in enumerate(asked)]
    for each in served:
        assert each.start_ns < each.first_ns <= each.end_ns and (each.first_ns < each.end_ns or each.tokens == 1)
    for wrong in ({"prompt": len(model.prompt) + 1, "generate": 1}, {"prompt": 1, "generate": CAPACITY + 1}, {}):
        ended = run([lines[0], {"id": 9, "network": "m", **wrong}])
        assert ended.error.code == "usage" and len(ended.all("served")) == 1


def test_a_hot_phone_serves_no_more(agent: Agent, tmp_path: Path) -> None:
    """The request that it served is answered, the next one is not; the error names what was hot."""
    root = write_nodes(tmp_path / "root", battery(temp="455"))
    requests = [{"id": 1, "hold_ns": 1_000_000}, {"id": 2, "hold_ns": 0}]
    ran = serve(agent, {}, requests, "--stop-temp-dc", 450, POCKETFARM_SYSROOT=root)
    assert [each.id for each in ran.all("served")] == [1]
    assert ran.error.code == "too_hot" and "battery at 45.5 C, above 45 C" in ran.error.message


def test_time_that_is_held(agent: Agent) -> None:
    ran = serve(agent, {}, [{"id": 1, "hold_ns": 30_000_000}, *({"id": 2, "hold_ns": 0} for _ in range(20))])
    held, *null = (each.end_ns - each.start_ns for each in ran.all("served"))
    assert held >= 30_000_000 > min(null)


def test_what_is_not_served(agent: Agent) -> None:
    late = {"id": 1, "hold_ns": 10_000_000_000, "deadline_ns": 1}
    ran = serve(agent, {"a": network("cpu")}, [late, {"id": 2, "network": "b"}, {"id": 3, "network": "a"}])
    assert [each.status for each in ran.all("served")] == ["late", "unknown_network", "ok"]


def test_networks_beyond_the_memory(agent: Agent) -> None:
    big = Draft("cpu", [combine("x", "x", "y")]).bundle(pools=(Pool(id="pool", bytes=800 << 10),))
    assert serve(agent, {"a": big}, [], "--memory-mib", 1).code == 0
    ran = serve(agent, {"a": big, "b": big}, [], "--memory-mib", 1)
    assert ran.error.code == "limit" and "up to `b`" in ran.error.message
    assert len(ran.all("device")) == 1, "the one too many was opened"


@pytest.mark.parametrize(
    "line",
    [
        "", "7", "{", '{"id": 1}', '{"network": "a"}', '{"id": 1, "network": "a", "hold_ns": 1}',
        '{"id": -1, "hold_ns": 0}', '{"id": 1.5, "hold_ns": 0}', '{"id": 1, "hold_ns": 18446744073709551615}',
        '{"id": 1, "hold_ns": 0, "more": 1}', '{"id": 1, "network": 2}', '{"id": 1, "network": "a", "count": 0}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_line_that_is_no_request_ends_it(agent: Agent, line: str) -> None:
    ran = serve(agent, {}, [{"id": 1, "hold_ns": 0}, line, {"id": 2, "hold_ns": 0}])
    assert ran.error.code == "usage"
    assert [each.id for each in ran.all("served")] == [1]


def test_its_turn_is_taken_for_each_inference(agent: Agent, tmp_path: Path) -> None:
    """Two that are resident in one slot both answer; a slot that was kept would let the second wait for ever."""
    slot, folder = tmp_path / "slot", tmp_path / "other"
    folder.mkdir()
    other = subprocess.Popen(
        [str(agent.binary), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=agent.environment({"POCKETFARM_SLOT": str(slot)}),
    )  # fmt: skip
    agent.started.append(other)
    assert other.stdout is not None
    while '"ready"' not in other.stdout.readline():
        pass
    ran = serve(agent, {"a": network("cpu")}, [{"id": 1, "network": "a"}], POCKETFARM_SLOT=str(slot))
    assert ran.one("served").status == "ok" and other.poll() is None
