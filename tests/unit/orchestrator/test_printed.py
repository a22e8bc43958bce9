"""Samples in a program's output: the right figures, or a refusal; never a wrong one."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest
from pydantic import ValidationError

from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import NS, Printed, Unread


def lines_of(text: str, stream: str = "stdout") -> list[Line]:
    given = {"seq": 0, "index": 0, "phase": "timed", "stream": stream}
    return [
        Line.model_validate({**given, "t_ns": 10 * i, "text": row.removesuffix("\n"), "whole": row.endswith("\n")})
        for i, row in enumerate(text.splitlines(keepends=True))
    ]


def drawn(rng: random.Random, unit: str) -> tuple[Printed, str, list[float]]:
    """A description, an output that it fits, and the values in it."""
    values = [round(rng.uniform(1, 10 ** rng.randint(1, 5)), rng.choice((0, 3))) for _ in range(rng.randint(1, 12))]
    kind = rng.choice(("regex", "path", "rows", "column"))
    if kind == "regex":
        rows = [f"run {i}: took {value} {unit}." for i, value in enumerate(values)]
        return Printed(regex=rf"took (?P<sample>\S+) {unit}\.$", unit=unit), "\n".join(["begin", *rows, "end"]), values  # type: ignore[arg-type]
    if kind == "path":
        told = {"name": "x 3.5 us", "tests": [{"times": values}], "n": 4}
        text = json.dumps(told, indent=rng.choice((None, 2)))
        return Printed(path="tests.0.times.*", unit=unit), text, values  # type: ignore[arg-type]
    if kind == "rows":
        rows = [json.dumps({"i": i, "time": value}) for i, value in enumerate(values)]
        return Printed(path="time", unit=unit), "\n".join(["loading", *rows]), values  # type: ignore[arg-type]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [["n", "a, b", "t"], *([i, "x,y", value] for i, value in enumerate(values))]
    )
    return Printed(column="t", unit=unit), "loading\n" + out.getvalue(), values  # type: ignore[arg-type]


def test_values_are_read_in_their_unit_and_order() -> None:
    rng = random.Random(random.randrange(2**32))
    for _ in range(400):
        unit = rng.choice(list(NS))
        printed, text, values = drawn(rng, unit)
        found = printed.samples(lines_of(text))
        assert [each.duration_ns for each in found] == [round(value * NS[unit]) for value in values], (printed, text)
        assert [each.t_ns for each in found] == sorted(each.t_ns for each in found)


def test_an_output_that_is_cut_or_spoilt_gives_no_wrong_figure() -> None:
    """Cut anywhere, rows lost or doubled in part, bytes spoilt: another number of samples, a refusal, or the same."""
    rng = random.Random(random.randrange(2**32))
    for _ in range(3000):
        unit = rng.choice(list(NS))
        printed, text, values = drawn(rng, unit)
        right = {round(value * NS[unit]) for value in values}
        at = rng.randrange(len(text))
        spoilt = text[:at] + rng.choice(("", "\ufffd" + text[at + 1 :], "\n" + text[at:]))  # cut, spoilt, divided
        try:
            found = [each.duration_ns for each in printed.samples(lines_of(spoilt))]
        except Unread:
            continue
        assert len(found) != len(values) or set(found) <= right, (printed, text, spoilt)


@pytest.mark.parametrize("value", ["nan", "inf", "-3", "0", "1e400", "", "x", "1_0x", "0x10", "true"])
def test_what_is_no_time_is_refused(value: str) -> None:
    for printed, text in (
        (Printed(regex="t=(?P<sample>.*)$", unit="us"), f"t={value}\n"),
        (Printed(column="t", unit="us"), f"t,u\n{value},1\n"),
        (Printed(path="t", unit="us"), json.dumps({"t": value})),
    ):
        with pytest.raises(Unread):
            printed.samples(lines_of(text))
    for other in (None, True, [], {}, float("nan"), -1.5):
        with pytest.raises(Unread):
            Printed(path="t", unit="us").samples(lines_of(json.dumps({"t": other})))


def test_the_other_stream_is_not_read() -> None:
    printed = Printed(path="t", unit="us")
    assert printed.samples([*lines_of("warning {", "stderr"), *lines_of('{"t": 5}')])[0].duration_ns == 5000
    asked = Printed(regex="(?P<sample>[0-9]+)", unit="us", stream="stderr")
    assert [each.duration_ns for each in asked.samples([*lines_of("7\n", "stderr"), *lines_of("8\n")])] == [7000]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"regex": "("}, "missing"),
        ({"regex": "took ([0-9]+)"}, "no group `sample`"),
        ({"regex": "(?P<sample>a)(?=b)"}, "cannot be used"),
        ({}, "exactly one"),
        ({"path": "a", "column": "b"}, "exactly one"),
    ],
)
def test_a_description_that_cannot_be_used(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Printed.model_validate({"unit": "us", **given})
