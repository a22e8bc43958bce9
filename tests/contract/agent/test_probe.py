"""What the agent says of devices, and that it never takes another than was asked."""

from __future__ import annotations

import pytest

from orchestrator.model.device import Api
from workers.devices.driver import VARIABLES

from .driver import Agent, Ended
from .plans import Draft, combine, vector


def probe(agent: Agent, **environment: str) -> Ended:
    return agent.call([str(agent.binary), "probe"], **environment)


def test_probe_lists_every_api(agent: Agent) -> None:
    run = probe(agent)
    assert run.code == 0
    facts = {event.facts.api: event.facts for event in run.all("probe")}
    assert set(facts) == {"opencl", "vulkan", "cpu"}
    for api in ("opencl", "vulkan"):
        one = facts[api]
        assert one.library
        assert min(one.global_bytes, one.max_buffer_bytes, one.local_bytes, one.max_work_group) > 0
        assert len(one.max_work_item_sizes) == 3
        assert "int8" in one.precisions
    assert facts["cpu"].precisions == ("fp32", "relaxed", "int8")
    assert facts["cpu"].compute_units > 0


@pytest.mark.parametrize("offered", ["opencl", "cpu,vulkan", "cpu"])
def test_probe_hides_what_the_device_lacks(agent: Agent, offered: str) -> None:
    run = probe(agent, POCKETFARM_APIS=offered)
    assert {event.facts.api for event in run.all("probe")} == set(offered.split(","))


def test_hidden_api_is_refused(agent: Agent, api: str) -> None:
    others = ",".join({"opencl", "vulkan", "cpu"} - {api})
    bundle = Draft(api, [combine("x", "x", "y")]).bundle()
    run = agent.run(bundle, {"x": vector(1)}, POCKETFARM_APIS=others)
    assert run.error.code == "unsupported"
    assert api in run.error.message
    assert run.all("device") == []


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_api_without_a_driver_is_no_device(agent: Agent, api: str) -> None:
    bundle = Draft(api, [combine("x", "x", "y")]).bundle()
    empty = agent.folder / "none"
    empty.mkdir()
    hidden = dict.fromkeys(VARIABLES[Api(api)], str(empty))
    run = agent.run(bundle, {"x": vector(1)}, **hidden)
    assert run.error.code == "no_device"
    assert run.all("device") == []
    told = [event.message for event in probe(agent, **hidden).all("warning")]
    assert len(told) == 1
    assert told[0].startswith(api)


def test_one_of_several_devices_is_taken_by_its_name(agent: Agent) -> None:
    two = {"POCL_DEVICES": "pthread basic"}
    names = [facts.device_name for facts in (event.facts for event in probe(agent, **two).all("probe"))
             if facts.api == "opencl" and "Portable" in facts.driver]  # fmt: skip
    assert len(set(names)) == 2
    bundle = Draft("opencl", [combine("x", "x", "y")]).bundle()
    for name in names:
        assert agent.run(bundle, {"x": vector(1)}, "--device", name, **two).one("device").facts.device_name == name


def test_named_device_is_taken_or_refused(agent: Agent, api: str) -> None:
    bundle = Draft(api, [combine("x", "x", "y")]).bundle()
    name = agent.run(bundle, {"x": vector(1)}).one("device").facts.device_name
    assert agent.run(bundle, {"x": vector(1)}, "--device", name[2:9]).one("device").facts.device_name == name
    refused = agent.run(bundle, {"x": vector(1)}, "--device", "no such device")
    assert refused.error.code == "no_device"
    assert name in refused.error.message
