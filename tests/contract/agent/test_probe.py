"""The agent tells of devices, and never takes another than was asked."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from device_agent.build import FOLDER
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


OPENCL_H = (FOLDER / "src" / "backends" / "opencl" / "library.h").read_text()
OF_OPENCL = re.findall(r"F\((cl\w+)\)", OPENCL_H.partition("OPENCL_12")[0])


def refusing(folder: Path, draw: random.Random) -> tuple[str, str]:
    """Write a drawn libOpenCL.so that cannot be used; its cause, and the words that tell it."""
    cause, library = draw.choice(("no library", "lacks a function", "no platform", "refuses")), "libOpenCL.so"
    status, left_out = -draw.randint(1, 1100), draw.choice(OF_OPENCL)
    says = {
        "no library": "file too short|invalid ELF header",
        "lacks a function": f"has no {left_out}$",
        "no platform": "has no platform$",
        "refuses": rf"clGetPlatformIDs failed: \w+ \({status}\)",
    }
    if cause == "no library":
        (folder / library).write_bytes(draw.randbytes(draw.randint(0, 200)))
    else:
        values = dict.fromkeys(OF_OPENCL, 0) | ({"clGetPlatformIDs": status} if cause == "refuses" else {})
        if cause == "lacks a function":
            del values[left_out]
        source = "".join(f"int {name}(void) {{ return {value}; }}\n" for name, value in values.items())
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / library]
        subprocess.run(command, input=source.encode(), check=True)
    return cause, says[cause]


@pytest.mark.parametrize("number", range(4))
def test_each_library_that_cannot_be_used_has_its_reason(agent: Agent, seed: int, number: int) -> None:
    """The reason decides a phone that nobody has seen: absent, closed, of another kind, or a driver that refuses."""
    libraries = agent.folder / "libraries"
    libraries.mkdir()
    cause, says = refusing(libraries, random.Random(f"{seed}/{number}"))
    (libraries / "libOpenCL.so.1").write_text("no library")  # else the host's own is taken
    run = probe(agent, LD_LIBRARY_PATH=str(libraries), POCKETFARM_APIS="opencl")
    told = run.one("warning").message.split("; ")
    own = [words for words in told if re.search(r"(^|/libraries/)libOpenCL\.so[: ]", words)]
    assert own and re.search(says, own[0]), (cause, told)
    assert all(re.search(r"cannot open|header|too short|was opened, but", words) for words in told)
    assert any("libOpenCL-car.so" in words for words in told)


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
