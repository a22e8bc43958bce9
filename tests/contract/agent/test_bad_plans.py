"""Plans, files and sizes that are wrong: an error event that says what and where, never a crash."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .driver import Agent
from .plans import COUNT, Draft, combine, spirv, vector

Json = dict[str, Any]
Change = Callable[[Json], object]


def written(agent: Agent, api: str) -> Path:
    draft = Draft(api, [combine("x", "w", "y")], weights={"w": vector(2)})
    folder = agent.folder / "plan"
    draft.bundle().write(folder)
    return folder


def changed(folder: Path, change: Change) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    change(plan)
    (folder / "plan.json").write_text(json.dumps(plan))


def setting(*path: str | int, value: object) -> Change:
    def change(plan: Any) -> None:
        for key in path[:-1]:
            plan = plan[key]
        plan[path[-1]] = value

    return change


ARGUMENTS = ("steps", 0, "arguments")
BAD: dict[str, tuple[Change, str, str]] = {
    "unknown member": (setting("typo", value=1), "plan_invalid", "typo"),
    "missing member": (lambda plan: plan.pop("pools"), "plan_invalid", "pools"),
    "newer schema": (setting("schema_version", value=2), "plan_invalid", "$.schema_version"),
    "unknown api": (setting("api", value="metal"), "plan_invalid", "metal"),
    "wrong type": (setting("pools", 0, "bytes", value="many"), "plan_invalid", "$.pools[0].bytes"),
    "negative size": (setting("pools", 0, "bytes", value=-1), "plan_invalid", "$.pools[0].bytes"),
    "absurd size": (setting("pools", 0, "bytes", value=2**47), "limit", "by"),
    "size beyond 64 bits": (setting("pools", 0, "bytes", value=2**64), "plan_invalid", "$.pools[0].bytes"),
    "buffer beyond its pool": (setting("buffers", 0, "offset", value=4096 * 3), "plan_invalid", "by 4000"),
    "offset that overflows": (setting("buffers", 0, "offset", value=2**63 - 1), "plan_invalid", "offset"),
    "blob range": (setting("buffers", 1, "blob_offset", value=4), "plan_invalid", "blob.bin"),
    "unaligned": (setting("buffers", 1, "offset", value=4097), "limit", "offset_alignment"),
    "unknown texel": (setting("programs", 0, "parameters", 0, "texel", value="rgba8"), "plan_invalid", "rgba8"),
    "written texel": (
        lambda plan: plan["programs"][0]["parameters"][0].update(texel="rgba32f", access="write"), "plan_invalid",
        "only read",
    ),
    "texel of a scalar": (
        lambda plan: plan["programs"][0]["parameters"][0].update(texel="r32f", kind="i32"), "plan_invalid", "only read",
    ),
    "unknown pool": (setting("buffers", 0, "pool", value="lake"), "plan_invalid", "lake"),
    "second buffer of a name": (setting("buffers", 1, "id", value="x"), "plan_invalid", "second buffer"),
    "unknown program": (setting("steps", 0, "program", value="nothing"), "plan_invalid", "nothing"),
    "unknown step": (setting("steps", 0, "kind", value="repeat"), "plan_invalid", "repeat"),
    "no work-items": (setting("steps", 0, "work_items", value=[0, 1, 1]), "plan_invalid", "work_items[0]"),
    "too few arguments": (lambda plan: plan["steps"][0]["arguments"].pop(), "plan_invalid", "10 arguments"),
    "argument of another kind": (setting(*ARGUMENTS, 0, value={"i32": 1}), "plan_invalid", "argument 0"),
    "NaN argument": (setting(*ARGUMENTS, 10, value={"f32": None}), "plan_invalid", "arguments[10]"),
    "part beyond its buffer": (
        setting(*ARGUMENTS, 0, value={"buffer": "x", "part": [0, 1 << 40]}), "plan_invalid", "arguments[0]",
    ),
    "part of nothing": (
        setting(*ARGUMENTS, 0, value={"buffer": "x", "part": [16, 16]}), "plan_invalid", "the part is empty",
    ),
    "part without an end": (
        setting(*ARGUMENTS, 0, value={"buffer": "x", "part": [0]}), "plan_invalid", "a first byte and an end",
    ),
    "huge float": (setting(*ARGUMENTS, 10, value={"f32": 1e300}), "plan_invalid", "32-bit"),
    "file outside": (setting("files", "../../etc/passwd", value="00"), "plan_invalid", "inside the bundle"),
    "absent file": (setting("files", "programs/none", value="00"), "io", "programs/none"),
    "other hash": (setting("files", "blob.bin", value="0" * 64), "plan_invalid", "SHA-256"),
    "other blob size": (setting("blob_bytes", value=5000), "plan_invalid", "blob"),
    "swap in first": (
        lambda plan: plan["steps"].append({"kind": "swap_in", "layer": "l", "buffer": "y"}), "plan_invalid", "before",
    ),
    "swap over a weight in host memory": (
        lambda plan: (
            plan["buffers"][1].update(role="offloaded"),
            plan["steps"].append({"kind": "swap_out", "layer": "l", "buffer": "y", "host": "w"}),
        ),
        "plan_invalid",
        "overwrite",
    ),
    "offloaded without content": (setting("buffers", 2, "role", value="offloaded"), "plan_invalid", "no content"),
    "copy beyond": (
        lambda plan: plan["steps"].append({"kind": "copy", "layer": "l", "source": "x", "target": "y", "bytes": 4004}),
        "plan_invalid", "by 4",
    ),
    "port larger than its buffer": (setting("outputs", 0, "shape", value=[1, 1001]), "plan_invalid", "by 4"),
    "port that overflows": (setting("outputs", 0, "shape", value=[2**40, 2**40]), "limit", "overflows"),
    "requires more memory": (setting("requires", "total_bytes", value=2**45), "limit", "total_bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_plan(agent: Agent, name: str) -> None:
    change, code, said = BAD[name]
    folder = written(agent, "cpu")
    changed(folder, change)
    error = agent.run(folder, {"x": vector(1)}).error
    assert (error.code, said in error.message) == (code, True), error


def test_a_plan_that_is_nested_without_end(agent: Agent) -> None:
    """A member is nested that the agent only copies: the copy was a recursion, and the stack has an end."""
    folder = written(agent, "cpu")
    changed(folder, setting("options", value="HERE"))
    text = (folder / "plan.json").read_text()
    (folder / "plan.json").write_text(text.replace('"HERE"', '{"a":' + "[" * 200_000 + "]" * 200_000 + "}"))
    error = agent.run(folder, {"x": vector(1)}).error
    assert (error.code, "nested deeper" in error.message) == ("plan_invalid", True), error


@pytest.mark.parametrize(
    ("api", "change", "said"),
    [
        ("opencl", setting("programs", 0, "work_group", value=[65536, 1, 1]), "max_work_group"),
        ("vulkan", setting("programs", 0, "work_group", value=[65536, 1, 1]), "max_work_group"),
        ("opencl", setting("programs", 0, "local_bytes", value=2**30), "local_bytes"),
        ("vulkan", setting("programs", 0, "local_bytes", value=2**30), "local_bytes"),
        ("vulkan", setting("steps", 0, "work_items", value=[1, 2**31 - 1, 1]), "maxComputeWorkGroupCount"),
        ("opencl", setting("requires", "max_buffer_bytes", value=2**46), "max_buffer_bytes"),
    ],
)
def test_limits_of_the_device(agent: Agent, api: str, change: Change, said: str) -> None:
    folder = written(agent, api)
    changed(folder, change)
    run = agent.run(folder, {"x": vector(1)})
    assert run.error.code == "limit"
    assert said in run.error.message
    assert "exceed" in run.error.message
    assert not any(event.step == "allocate" for event in run.all("setup"))


@pytest.mark.parametrize("api", ["opencl", "vulkan", "cpu"])
def test_a_run_may_have_less_memory_than_the_device(agent: Agent, api: str) -> None:
    """The refusal is that of a phone with so much: the allocation, its largest buffer, and by how much."""
    folder = written(agent, api)
    pools = json.loads((folder / "plan.json").read_text())["pools"]
    total, largest = sum(pool["bytes"] for pool in pools), max(pool["bytes"] for pool in pools)
    fitting = ("--memory-total", total, "--largest-object", largest)
    ended = agent.run(folder, {"x": vector(1)}, *fitting)
    assert ended.code == 0 and ended.one("memory").device_peak_bytes >= total
    for option, most in (("--memory-total", total), ("--largest-object", largest)):
        refused = agent.run(folder, {"x": vector(1)}, option, most - 1)
        assert (
            refused.error.code == "limit" and f"the run's limit ({option}) of {most - 1} by 1" in refused.error.message
        )
        assert "pool `" in refused.error.message and "largest buffer: `" in refused.error.message
        assert not any(event.step == "allocate" for event in refused.all("setup"))


@pytest.mark.parametrize("api", ["opencl", "cpu"])
def test_precision_that_the_device_lacks(agent: Agent, api: str) -> None:
    facts = agent.call([str(agent.binary), "probe"], POCKETFARM_APIS=api).all("probe")[0].facts  # the one that is taken
    if "fp16_arithmetic" in facts.precisions:
        pytest.skip(f"{facts.device_name} has half arithmetic")
    folder = written(agent, api)
    changed(folder, setting("precision", value="fp16_arithmetic"))
    assert agent.run(folder, {"x": vector(1)}).error.code == "unsupported"


def test_source_that_does_not_compile(agent: Agent) -> None:
    bundle = Draft("opencl", [combine("x", "x", "y")]).bundle()
    program = bundle.plan.programs[0].model_dump()
    program["opencl"]["options"] = "-DCOUNT -Dglobal=nonsense_word -D__global=nonsense_word"
    bundle = Draft("opencl", [combine("x", "x", "y")]).bundle(programs=[program])
    error = agent.run(bundle, {"x": vector(1)}).error
    assert error.code == "build_failed"
    assert "nonsense_word" in error.message


def test_kernel_that_is_not_there(agent: Agent) -> None:
    folder = written(agent, "opencl")
    changed(folder, setting("programs", 0, "kernel", value="absent"))
    error = agent.run(folder, {"x": vector(1)}).error
    assert (error.code, "`absent`" in error.message) == ("plan_invalid", True)


@pytest.mark.parametrize("content", [b"", b"not SPIR-V at all....", spirv("#version 450\nvoid main() {}")[:-6]])
def test_damaged_spirv(agent: Agent, content: bytes) -> None:
    from hashlib import sha256

    folder = written(agent, "vulkan")
    (folder / "programs" / "binary.spv").write_bytes(content)
    changed(folder, setting("files", "programs/binary.spv", value=sha256(content).hexdigest()))
    assert agent.run(folder, {"x": vector(1)}).error.code == "plan_invalid"


def test_unknown_cpu_operation(agent: Agent) -> None:
    folder = written(agent, "cpu")
    changed(folder, setting("programs", 0, "kernel", value="fft"))
    error = agent.run(folder, {"x": vector(1)}).error
    assert error.code == "plan_invalid"
    assert "`fft`" in error.message
    assert "conv2d" in error.message


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("value", [COUNT + 1, 2**31 - 1, 0, -1])
def test_cpu_sizes_beyond_the_buffers(agent: Agent, number: int, value: int) -> None:
    folder = written(agent, "cpu")
    changed(folder, setting(*ARGUMENTS, 3 + number, value={"i32": value}))
    error = agent.run(folder, {"x": vector(1)}).error
    assert (error.code, error.step) == ("plan_invalid", "layer")


def test_a_part_of_a_cpu_buffer_begins_at_a_float(agent: Agent) -> None:
    folder = written(agent, "cpu")
    changed(folder, setting(*ARGUMENTS, 0, value={"buffer": "x", "part": [2, 4]}))
    error = agent.run(folder, {"x": vector(1)}).error
    assert (error.code, error.step) == ("plan_invalid", "layer")
    assert "inside of a number of 4 bytes" in error.message


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"schema_version": 1e400}'])
def test_plan_that_is_no_plan(agent: Agent, text: bytes) -> None:
    folder = written(agent, "cpu")
    (folder / "plan.json").write_bytes(text)
    assert agent.run(folder, {"x": vector(1)}).error.code == "plan_invalid"


def test_absent_plan(agent: Agent) -> None:
    error = agent.run(agent.folder / "nowhere", {}).error
    assert (error.code, "nowhere/plan.json" in error.message) == ("io", True)


def test_inputs_are_checked(agent: Agent) -> None:
    folder = written(agent, "cpu")
    assert "`x` is missing" in agent.run(folder, {}).error.message
    assert "no input `z`" in agent.run(folder, {"x": vector(1), "z": vector(1)}).error.message
    short = agent.run(folder, {"x": vector(1)[:-1]}).error
    assert (short.code, "3996 bytes" in short.message, "4000" in short.message) == ("usage", True, True)
    absent = agent.run(folder, {}, "--input", "x=/nowhere/x.bin").error
    assert (absent.code, "/nowhere/x.bin" in absent.message) == ("io", True)


def test_damaged_plans_never_crash(agent: Agent, seed: int) -> None:
    """Numbers of a valid plan replaced by extreme ones: an error event or a result, never a signal."""
    draw = random.Random(seed)
    for _ in range(60):
        folder = written(agent, draw.choice(["cpu", "cpu", "cpu", "vulkan"]))
        changed(folder, lambda plan: damage(plan, draw))
        run = agent.run(folder, {"x": vector(1)}, "--deadline-s", 20)
        assert run.code in (0, 1), (seed, (folder / "plan.json").read_text())


def damage(plan: Json, draw: random.Random) -> None:
    """Replace one number or string somewhere."""
    places = list(leaves(plan))
    container, key = draw.choice(places)
    container[key] = draw.choice(
        [0, -1, 1, 3, 4095, 2**31 - 1, 2**31, 2**48, 2**63, 1e300, "", "x", None, True, [], {}]
    )


def leaves(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        if isinstance(item, dict | list) and item:
            yield from leaves(item)
        else:
            yield value, key


@pytest.mark.parametrize(("allowed", "is_refused"), [(63, True), (64, False)])
def test_a_kernel_that_the_driver_refuses_is_named_with_its_limit(agent: Agent, allowed: int, is_refused: bool) -> None:
    folder = written(agent, "opencl")
    (program,) = json.loads((folder / "plan.json").read_text())["programs"]
    kernel = program["kernel"]
    limits = f"other=1,{kernel}={allowed}"
    ended = agent.run(folder, {"x": vector(1)}, "--samples", 1, POCKETFARM_KERNEL_LIMITS=limits)
    assert (ended.code != 0) == is_refused
    if is_refused:
        error = ended.error
        assert (error.code, error.kernel, error.work_group, error.work_group_limit) == ("limit", kernel, 64, 63)
        assert "work-group of 64; this kernel allows 63 on this device, 1 fewer" in error.message
