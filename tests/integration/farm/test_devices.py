"""`farm devices` and `farm release`: what a device is, and what keeps it from work."""

from __future__ import annotations

import json
import os
import random
import re
import unicodedata
from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
from pydantic import ValidationError
from redis import Redis
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from farm.cli.fleet.devices import table_of
from farm.cli.terminal import Terminal
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api, Device, Precision
from orchestrator.model.record import Outcome
from orchestrator.report.listing import Listing, Plain
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from orchestrator.system.durable_files import write_durably
from tests.unit.orchestrator import make
from workers.devices.device_lock import device_lock
from workers.session.saved_settings import FOLDER

from .conftest import Cli


@pytest.fixture
def quarantined(settings: Settings, redis: Redis) -> str:
    """Device A, whose three latest attempts were lost."""
    device = make.device("A")
    Inventory(redis).announce_device(device)
    experiment = make.many(3)
    jobs = expand(experiment, "e-1", [device]).jobs
    with Ledger(settings.ledger) as ledger:
        ledger.submit("e-1", experiment, jobs)
        for job in jobs:
            assignment = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
            assert assignment is not None
            ledger.end_attempt(job.job_id, assignment.attempt, Outcome.LOST, "transport_lost")
    return "A"


def test_quarantine_is_shown_with_its_reason_and_lifted_by_hand(quarantined: str, cli: Cli) -> None:
    (shown,) = json.loads(cli("devices", "--json")[1])
    assert shown["state"]["health"] == "quarantined"
    assert "3 attempts in a row" in shown["state"]["reason"]
    assert "farm release A" in shown["state"]["reason"]
    assert json.loads(cli("release", "A", "--json")[1]) == {"released": "A"}
    assert json.loads(cli("devices", "A", "--json")[1])["state"]["health"] == "ready"


def test_what_is_not_in_quarantine_cannot_be_released(quarantined: str, cli: Cli) -> None:
    code, out, err = cli("release", "B", "--json")
    assert code == 1
    assert json.loads(out)["error"]["message"] == "'B' is neither held nor in quarantine; these are: A"
    assert "farm devices" in err
    cli("release", "A")
    assert "neither held nor in quarantine; nothing is" in cli("release", "A")[2]


def test_a_host_in_quarantine_is_shown_and_released(settings: Settings, redis: Redis, cli: Cli) -> None:
    Inventory(redis).announce_device(make.device("A"))
    with Ledger(settings.ledger) as ledger:
        jobs = expand(make.many(1), "e-1", [make.device("A")]).jobs
        ledger.submit("e-1", make.many(1), jobs)
        for _ in range(3):
            begun = ledger.begin_attempt(jobs[0].job_id, "A", "lab", 15.0)
            assert begun is not None
            ledger.end_attempt(jobs[0].job_id, begun.attempt, Outcome.LOST, "record_missing")
    (shown,) = json.loads(cli("devices", "--json")[1])
    assert shown["state"]["health"] == "quarantined" and "its host lab had 3 faults" in shown["state"]["reason"]
    assert "host lab gets no work: 3 faults of its own" in cli("status")[2]
    assert json.loads(cli("release", "lab", "--json")[1]) == {"released": "lab"}
    assert json.loads(cli("devices", "A", "--json")[1])["state"]["health"] == "ready"


def test_a_device_is_held_for_one_person_and_released(
    settings: Settings, redis: Redis, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Inventory(redis).announce_device(make.device("A"))
    monkeypatch.setenv("LOGNAME", "anna")
    with Ledger(settings.ledger) as ledger:
        jobs = expand(make.many(1), "e-1", [make.device("A")]).jobs
        ledger.submit("e-1", make.many(1), jobs)
        begun = ledger.begin_attempt(jobs[0].job_id, "A", "lab", 15.0)
        assert begun is not None
    made = json.loads(cli("hold", "A", "--for", "2 h", "--note", "new battery", "--json")[1])
    assert made["holds"][0]["who"] == "anna" and made["running"][0]["serial"] == "A" and not made["handed_back"]
    (shown,) = json.loads(cli("devices", "--json")[1])
    assert shown["state"]["health"] == "held"
    assert re.match(r"by anna until \d\d:\d\d: new battery; `farm release A` ends it", shown["state"]["reason"])
    monkeypatch.setenv("LOGNAME", "bert")
    code, _, err = cli("hold", "A")
    assert code == 1 and "A is held by anna until" in err and "ask anna" in err
    write_durably(settings.state / FOLDER / "A.json", "what the session that runs has changed")
    with device_lock(settings.state, "A"):
        assert json.loads(cli("release", "A", "--json")[1]) == {"released": "A"}
    back = json.loads(cli("hold", "A", "--now", "--json")[1])
    assert back["handed_back"] == made["running"] and not back["running"]
    with Ledger(settings.ledger) as ledger:
        assert ledger.counts() == {"waiting": 1} and ledger.running() == []
        assert [each.who for each in ledger.standing.holds()] == ["bert"]


def test_a_hold_of_what_nobody_knows_or_that_is_over_is_refused(settings: Settings, redis: Redis, cli: Cli) -> None:
    Inventory(redis).announce_device(make.device("A"))
    code, _, err = cli("hold", "A", "AB")
    assert code == 1 and "no device 'AB' is known; there are: A" in err
    assert cli("hold", "A", "--until", "2020-01-01 08:00")[0] == 2
    assert cli("hold", "A", "--until", "soon")[0] == 2
    with Ledger(settings.ledger) as ledger:
        assert ledger.standing.holds() == []


def test_a_lost_job_is_retried(quarantined: str, cli: Cli, settings: Settings) -> None:
    with Ledger(settings.ledger) as ledger:
        job_id = ledger.jobs("e-1")[0].job_id
        for _ in range(2):
            assignment = ledger.begin_attempt(job_id, quarantined, "lab", 15.0)
            assert assignment is not None
            ledger.end_attempt(job_id, assignment.attempt, Outcome.LOST, "transport_lost")
        assert ledger.counts("e-1") == {"lost": 1, "waiting": 2}
    assert json.loads(cli("retry", "latest", "--json")[1]) == {"target": "latest", "retried": [job_id]}
    code, _, err = cli("retry", job_id)
    assert code == 1 and f"no job of {job_id} is lost, failed or killed" in err


def test_the_table_fits_a_terminal_of_100_columns() -> None:
    apis = [make.api(api, Precision.FP32, Precision.FP16) for api in Api]
    found = make.device("virtual-galaxy_s7-0", *apis, battery_percent=72, battery_temp_c=24, reason="cooling down")
    facts = {"model": "SM-G930V", "soc": "Snapdragon 820", "gpu": "Adreno (TM) 530", "memory_bytes": 4 << 30}
    found = found.model_copy(update={"facts": found.facts.model_copy(update=facts)})
    buffer = StringIO()
    Console(file=buffer, width=100).print(table_of([found]))
    words = buffer.getvalue().split()
    assert {"virtual-galaxy_s7-0", "opencl+fp16", "vulkan+fp16", "cpu+fp16", "SM-G930V,", "530,", "72"} <= set(words)
    assert len(buffer.getvalue().splitlines()) <= 5


STEERING = (
    "\x1b[31m",
    "\x1b]0;x\x07",
    "\x9b31m",
    "\r",
    "\x08",
    "\u202e",
    "\u2066",
    "\u200f",
    "\x85",
    "\x00",
    "[/x]",
    "[bold]",
)
STEERING += ("[link=http://evil]", "\ud83d")


def steered(value: Any, chance: random.Random) -> Any:
    """Return the value with characters that steer a terminal in every text that is free."""
    if isinstance(value, dict):
        return {key: steered(each, chance) if key not in FIXED else each for key, each in value.items()}
    if isinstance(value, list):
        return [steered(each, chance) for each in value]
    if not isinstance(value, str):
        return value
    parts = [value[: len(value) // 2], value[len(value) // 2 :]]
    return "".join(part + chance.choice(STEERING[:-1]) for part in parts)


FIXED = (
    "host",
    "kind",
    "source",
    "health",
    "api",
    "apis",
    "abi",
    "serial",
    "precisions",
    "name",
    "clock_lock",
    "power",
)


def test_text_of_others_does_not_steer_the_terminal(
    settings: Settings, redis: Redis, cli: Cli, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, inventory = random.Random(seed), Inventory(redis)
    strange = 0
    for number in range(8):
        data = steered(make.device(f"P{number}").model_dump(mode="json"), chance)
        with suppress(ValidationError):
            inventory.announce_device(Device.model_validate(data))
            strange += 1
    assert strange
    serial = "Q" + "".join(STEERING[:-1]).replace("/", "")
    inventory.announce_device(make.device(serial))
    with Ledger(settings.ledger) as ledger:
        ledger.dead.set_aside(b"x", "".join(STEERING[:-1]), host="lab", name="".join(STEERING[:-1]))
        ledger.standing.hold([serial], "".join(STEERING[:-1]), note="".join(STEERING[:-1]))
    monkeypatch.setenv("FORCE_COLOR", "1")
    commands = [("devices",), ("records",), ("status",), ("hold",), *(("devices", f"P{n}") for n in range(8))]
    for command in [*commands, ("devices", serial), ("devices", "no\x1b[31m\u202ename")]:
        _, out, err = cli(*command)
        left = re.sub(r"\x1b\[[0-9;]*m", "", out + err) if os.environ.get("FORCE_COLOR") else out + err
        wrong = {each for each in left if unicodedata.category(each) in ("Cc", "Cf", "Cs") and each not in "\n\t"}
        assert not wrong, (command, wrong, left[:500])


def test_all_that_a_console_prints_is_clean(seed: int) -> None:
    chance, said = random.Random(seed), StringIO()
    console = Terminal(file=said, force_terminal=True, width=60, legacy_windows=False)
    text = "".join(chance.choice([*STEERING, "word", "\n", "\t"]) for _ in range(50))
    for what in (text, Text(text), Listing(("a", "b"), [Plain([text, "x"]), (Text(text), "y")]), Panel(Text(text))):
        console.print(what)
    console.print(text, markup=False, soft_wrap=True)
    left = re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue())
    assert not {each for each in left if unicodedata.category(each) in ("Cc", "Cf", "Cs") and each not in "\n\t"}
    assert "\x1b]8" not in said.getvalue(), "no link of somebody else's"
