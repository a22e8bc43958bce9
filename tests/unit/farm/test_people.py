"""`farm people`, `farm tokens`, `farm projects`: what they print, and what the ledger then says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farm.cli import main
from orchestrator.ledger import Ledger
from orchestrator.model.people import Role
from orchestrator.model.rights import Grants

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command with `--json` on a ledger of its own: status, what it printed, standard error."""
    Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}").close()

    def called(*words: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        status = main([*words, "--state", str(tmp_path), "--json"])
        found = capsys.readouterr()
        return status, json.loads(found.out), found.err

    return called


def test_people_have_roles_by_project_until_they_leave(run: Run) -> None:
    usual = {"share": 1.0, "phone_hours": 0.0, "most_waiting": 0, "storage_gib": 0.0}
    assert run("projects", "add", "vision", "--note", "cameras")[:2] == (0, {"project": "vision", "terms": usual})
    for project in ("vision", "common"):
        terms = run("projects", "set", project, "--share", "2", "--phone-hours", "40")[1]["terms"]
        assert terms == usual | {"share": 2.0, "phone_hours": 40.0}
        assert run("projects", "set", project, "--phone-hours", "0")[1]["terms"] == usual | {"share": 2.0}
    assert {each["name"]: each["note"] for each in run("projects", "list")[1]} == {"common": "", "vision": "cameras"}
    assert run("people", "add", "anna", "--role", "submit", "--project", "vision")[1]["is_new"]
    assert not run("people", "add", "anna", "--role", "view")[1]["is_new"]
    assert run("people", "add", "ci", "--service")[1]["kind"] == "service"
    assert run("people", "group", "cameras", "--role", "operate", "--project", "vision")[1]["is_new"]
    assert run("people", "join", "cameras", "anna", "ci")[1]["people"] == ["anna", "ci"]
    assert run("people", "leave", "cameras", "ci")[1]["people"] == ["ci"]
    told = {each["name"]: (each["farm"], each["projects"], each["groups"]) for each in run("people", "list")[1]}
    assert told == {
        "anna": ("view", {"vision": "submit"}, ["cameras"]),
        "cameras": (None, {"vision": "operate"}, []),
        "ci": (None, {}, []),
    }
    assert {each["name"]: each["members"] for each in run("projects", "list")[1]} == {
        "common": {},
        "vision": {"anna": "submit", "cameras": "operate"},
    }
    assert run("people", "add", "ci", "--role", "submit")[1]["role"] == "submit", "it stays a service"
    assert {each["name"]: each["kind"] for each in run("people", "list")[1]}["ci"] == "service"
    assert run("people", "remove", "anna")[0] == 0
    (anna,) = [each for each in run("people", "list")[1] if each["name"] == "anna"]
    assert (anna["farm"], anna["projects"]) == (None, {}) and anna["ended_at"]


def test_a_token_is_printed_once(run: Run, tmp_path: Path) -> None:
    run("people", "add", "anna", "--role", "operate")
    status, made, _ = run("tokens", "create", "anna", "--most", "view", "--days", "1", "--note", "a try")
    assert status == 0 and made["token"].startswith("farm_")
    (listed,) = run("tokens", "list", "anna")[1]
    assert (listed["id"], listed["note"], listed["most"]) == (made["id"], "a try", "view") and "token" not in listed
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        bearer = ledger.people.tokens.bearer(made["token"])
        assert bearer is not None and (bearer.person, bearer.grants) == ("anna", Grants(Role.VIEW))
        said = [(row.act, made["token"] in row.said) for row in ledger.audit.newest(9)]
        assert said == [("create token", False), ("grant role", False), ("add person", False)]
        assert run("tokens", "revoke", made["id"])[0] == 0
        assert ledger.people.tokens.bearer(made["token"]) is None
    assert not run("tokens", "revoke", made["id"])[1]["is_new"]


@pytest.mark.parametrize(
    ("words", "what", "mend"),
    [
        (("people", "add", "no name"), "cannot be called 'no name'", "letters"),
        (("people", "remove", "nobody"), "nobody is called 'nobody'", "farm people add"),
        (("people", "add", "anna", "--role", "view", "--project", "none"), "no project 'none'", "farm projects add"),
        (("people", "join", "nobody", "anna"), "no group is called 'nobody'", "farm people group"),
        (("tokens", "create", "nobody"), "nobody is called 'nobody'", "farm people add"),
        (("tokens", "revoke", "none"), "no token 'none'", "farm tokens list"),
        (("projects", "add", "common"), "a project common already", "another name"),
        (("projects", "set", "common", "--share", "0"), "a share of 0 is out of range", "0.01 to 100"),
        (("projects", "set", "none", "--share", "2"), "no project 'none'", "farm projects add"),
        (("devices", "reserve", "A", "--until", "2020-01-01 08:00"), "over already", "an end that is to come"),
        (("devices", "reserve", "A", "--until", "23:59"), "no device 'A' is known", "farm devices"),
        (("devices", "unreserve", "7"), "no reservation 7", "farm devices reservations"),
    ],
)
def test_bad_input_says_what_and_how_to_mend_it(run: Run, words: tuple[str, ...], what: str, mend: str) -> None:
    status, told, _ = run(*words)
    assert status == 1 and what in told["error"]["message"] and mend in told["error"]["remedy"]
