"""The alert rules, in the hands of Prometheus's own tool and of a real server."""

from __future__ import annotations

import json
import re
import subprocess

import yaml

from tests.servers import required

from .conftest import Farm
from .servers import DASHBOARDS, get

TESTED = ("alerts_test.yml", "alerts_days_test.yml")
RULES = yaml.safe_load((DASHBOARDS / "alerts.yml").read_text())["groups"][0]["rules"]
RECORDED = yaml.safe_load((DASHBOARDS / "rules.yml").read_text())["groups"][0]["rules"]


def promtool(*arguments: str) -> None:
    done = subprocess.run(
        [required("promtool"), *arguments], capture_output=True, text=True, cwd=DASHBOARDS, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_pass_their_tests() -> None:
    promtool("test", "rules", *TESTED)


def test_configuration_is_valid() -> None:
    promtool("check", "config", "prometheus.yml")


def test_every_alert_has_a_test_that_it_fires() -> None:
    tests = [test for name in TESTED for test in yaml.safe_load((DASHBOARDS / name).read_text())["tests"]]
    fired = {each["alertname"] for test in tests for each in test.get("alert_rule_test", ()) if each["exp_alerts"]}
    asked = [each for test in tests for each in test.get("promql_expr_test", ()) if each.get("exp_samples")]
    fired |= {name for each in asked for name in re.findall(r'alertname="(\w+)"', each["expr"])}
    assert fired == {rule["alert"] for rule in RULES}


def test_every_recorded_series_is_tested_and_used() -> None:
    """Each has a test of its value, and a panel or an alert that uses it; and none is used that nobody records."""
    tests = [test for name in TESTED for test in yaml.safe_load((DASHBOARDS / name).read_text())["tests"]]
    asked = [each["expr"] for test in tests for each in test.get("promql_expr_test", ()) if each.get("exp_samples")]
    boards = [path.read_text() for path in (DASHBOARDS / "grafana" / "boards").glob("*.json")]
    recorded = {rule["record"] for rule in RECORDED}
    assert recorded == {name for text in asked for name in names_of_recorded(text)}
    inputs = [rule["expr"] for rule in (*RULES, *RECORDED)]
    assert recorded == {name for text in (*boards, *inputs) for name in names_of_recorded(text)}


def names_of_recorded(text: str) -> list[str]:
    """LEVEL:METRIC:OPERATION."""
    return re.findall(r"\b[a-z_]+:\w+:\w+", text)


def test_every_alert_says_what_to_do() -> None:
    assert all({"summary", "remedy"} == set(rule["annotations"]) for rule in RULES)
    assert all(rule["labels"]["severity"] in {"critical", "warning"} for rule in RULES)


def test_a_server_evaluates_all_of_them(farm: Farm) -> None:
    farm.prometheus.wait_for('ALERTS{alertname="DeviceQuarantined", alertstate="firing", serial="nexus-5"}')
    groups = json.loads(get(f"{farm.prometheus.url}/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")} == {}
    assert len(rules) == len(RULES) + len(RECORDED)
