"""Device expressions: meaning, types, and what a person is told."""

from __future__ import annotations

import re
import time

import pytest

from orchestrator.model.device import Api, ApiFacts, Device, DeviceFacts, DeviceState, Health, Precision, Source
from orchestrator.model.errors import SpecError
from orchestrator.spec.expansion import device_selection as select

PHONE = Device(
    facts=DeviceFacts(
        serial="R5", host="lab", kind="phone", source=Source.VIRTUAL, model="SM-G930F", gpu_vendor="mali",
        memory_bytes=4 * 2**30, sdk=26, cores=8,
        apis=(ApiFacts(api=Api.OPENCL, version="2", device_name="Mali", precisions=(Precision.FP32, Precision.FP16)),),
    ),
    state=DeviceState(health=Health.READY, battery_percent=50.0, charging=True),
)  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), [
    ("true", True),
    ("false", False),
    ('gpu_vendor == "mali"', True),
    ("gpu_vendor != 'mali'", False),
    ("memory >= 3 GiB and memory < 5GB", True),
    ("3 GiB <= memory", True),
    ("memory > 4096 MiB", False),
    ('"opencl" in apis and not "vulkan" in apis', True),
    ('"fp16" in precisions', True),
    ('serial in ["A", "R5",]', True),
    ("serial in []", False),
    ("sdk >= 29 or cores == 8", True),
    ("sdk >= 29 or cores == 8 and false", False),
    ("(sdk >= 29 or cores == 8) and charging", True),
    ("charging == true and not false", True),
    ("battery > 40 % and battery <= 50%", True),
    ('model ~ "SM-.*"', True),
    ('model ~ "SM"', False),
    ("battery_temp < 30 C", False),
    ("battery_temp >= 30 C", False),
    ("not battery_temp < 30 C", True),
])  # fmt: skip
def test_meaning(expression: str, expected: bool) -> None:
    assert select.parse(expression).matches(PHONE) is expected


@pytest.mark.parametrize(("expression", "message"), [
    ('gpu_vender == "x"', "column 1: unknown name `gpu_vender`; did you mean `gpu_vendor`?"),
    ("serial == R5", 'column 11: unknown name `R5`; a text is written in quotes: "R5"'),
    ("memory >= 3", "column 11: memory is a size"),
    ("memory >= 3 gib", "column 13: unknown unit `gib`"),
    ("memory >= 40 %", "column 11: memory is a size"),
    ("sdk >=", "column 7: unexpected `the end`"),
    ("", "column 1: unexpected `the end`"),
    ("(sdk > 3", "expected )"),
    ("sdk > 3 sdk", "column 9"),
    ("@", "column 1: unexpected `@`"),
    ('model < "x"', "compares numbers"),
    ('apis == "opencl"', "is a set"),
    ('"vulcan" in apis', 'did you mean "vulkan"?'),
    ('kind == "fone"', 'did you mean "phone"?'),
    ("memory", "compare it"),
    ('model ~ "(a*)*"', "may not be repeated"),
    ('model ~ "a*b*c*d*e"', "at most"),
    ('model ~ "["', "not a regular expression"),
    ('sdk ~ "3"', "`~` compares texts"),
    ("__import__('os')", "unexpected `("),
    ("true and " * 200 + "true", "at most 1000"),
])  # fmt: skip
def test_what_is_wrong_is_said(expression: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        select.parse(expression)


@pytest.mark.parametrize("expression", [
    "sdk < 30", "memory < 8 GiB", "cores < 64", 'gpu != "Adreno 660"', 'soc ~ ".*"', 'profile == ""', 'model ~ "N.*"',
    'abi in ["", "None"]',
])  # fmt: skip
def test_what_a_device_does_not_tell_meets_no_comparison(expression: str) -> None:
    bare = Device(
        facts=DeviceFacts(serial="vm-cpu", host="lab", kind="workstation", source=Source.WORKSTATION),
        state=DeviceState(health=Health.READY),
    )
    selection = select.parse(expression)
    assert not selection.matches(bare) and "unknown" in selection.why_not(bare)


def test_why_not_names_what_the_device_has() -> None:
    selection = select.parse('gpu_vendor == "adreno" and memory >= 8 GiB and sdk > 20')
    assert selection.why_not(PHONE) == 'gpu_vendor == "adreno" (here "mali"); memory >= 8 GiB (here 4 GiB)'
    assert select.parse("true").why_not(PHONE) == ""


def test_a_nasty_pattern_ends_soon() -> None:
    nasty = PHONE.model_copy(update={"facts": PHONE.facts.model_copy(update={"model": "a" * 100_000})})
    start = time.process_time()
    assert not select.parse('model ~ "a*a*a*b"').matches(nasty)
    assert time.process_time() - start < 30


def test_deep_nesting_is_an_error_or_works() -> None:
    assert select.parse("(" * 400 + "true" + ")" * 400).matches(PHONE)
    assert select.parse("not " * 200 + "true").matches(PHONE)
