"""The report of queueing experiments."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from orchestrator.queueing.capacity import load_curve
from orchestrator.queueing.experiment import compare_policies
from orchestrator.queueing.measures import measure
from orchestrator.queueing.oracle import theory_of
from orchestrator.queueing.requests import Requests, Run
from orchestrator.queueing.spec import QueueingSpec
from orchestrator.report.queueing import Told, charts, queueing_page
from tests.unit.queueing.make import EXPONENTIAL, make, request_class, run

HEAT = {"ambient": "25 C", "rise_c": 20, "time_constant": "5 s", "throttle_at": "60 C"}
SERVER = {"name": "s", "count": 2, "power": {"idle_w": 0.5, "busy_w": 2.0}, "heat": HEAT}


def small(**more: object) -> QueueingSpec:
    return make([request_class(rate=140.0)], [SERVER], duration="10 s", **more)


def told(spec: QueueingSpec, **more: object) -> Told:
    ran = run(spec)
    return Told(spec, "simulated", measure(spec, [ran]), [ran], **more)  # type: ignore[arg-type]


def test_theory_of_a_network_is_a_cross_at_each_load() -> None:
    """It is that of whole requests, as the curve is; stations have rows of the table alone."""
    stations = [{"name": "one", "servers": ["p"], "next": {"two": 1.0}}, {"name": "two", "servers": ["q"]}]
    spec = make(servers=[{"name": "p"}, {"name": "q"}], stations=stations, duration="10 s")
    points = [(each, theory_of(spec.at_rate(each.offered_per_s))) for each in load_curve(spec, [0.3, 0.6])]
    lines = charts.load_curve(points).figure.axes[0].get_lines()
    (crosses,) = [line for line in lines if line.get_label() == "theory, mean"]
    assert crosses.get_ydata() == pytest.approx([2 * 1000 / 70, 2 * 1000 / 40])  # two M/M/1, of 30 and of 60 a second


def test_everything_that_was_asked_is_told() -> None:
    plain = make([request_class(rate=70.0)], duration="10 s")
    page = queueing_page(told(plain, curve=list(load_curve(plain, [0.3, 0.6]))))
    assert page.count("<svg") == 3 and "theory, mean" in page and "M/M/1 (theory)" in page
    assert "SIMULATED" in page and "<script" not in page
    under = [(spec.policy.name or "", found) for spec, found in compare_policies(small(), ["fifo", "jsq"])]
    page = queueing_page(told(small(), policies=under, servers=[("s-1", "R58", "SM-G930F", "phone", "unplugged")]))
    assert page.count("<svg") == 3 and "with idle servers, J" in page and "°C" in page
    assert all(each in page for each in ("jsq", "R58", "unplugged"))
    for drawn in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(drawn)
        assert "mathdefault" not in drawn


def test_what_comes_from_outside_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    spec = small(description=evil)
    page = queueing_page(told(spec, servers=[(evil, evil, evil, evil, evil)]))
    assert "<script" not in page and "&lt;script&gt;" in page


def test_a_run_without_an_answer_is_told() -> None:
    """Every request was lost with its phone, and no server told its temperature."""
    ran = run(make([request_class(service=EXPONENTIAL)], duration="5 s"))
    rows = ran.requests.rows.copy()
    rows[:, 8], rows[:, 2] = 3, np.nan
    lost = Run(Requests(rows), ran.course, ran.duration_s, 0.0, 0, None, ("R58 went away after 1 s: unplugged",))
    spec = make(duration="5 s", warm_up="none")
    page = queueing_page(Told(spec, "phone", measure(spec, [lost]), [lost]))
    assert "went away" in page and "lost with their phone" in page and "not a phone" not in page


def test_the_tail_is_that_of_the_requests() -> None:
    spec = make(duration="20 s")
    requests = run(spec).requests
    line = charts.tail(spec, requests).figure.axes[0].get_lines()[0]
    x, share = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    at = int(np.argmin(np.abs(share - 0.1)))
    assert abs(np.mean(1000 * requests.done.sojourn_s > x[at]) - share[at]) < 0.005
