"""A command prints the same of a farm here and of one elsewhere: words, JSON, errors, exit status."""

from __future__ import annotations

import io
import json
import random
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from client import Refused
from farm import Farm
from farm.cli import main
from orchestrator.coordination.client import client_of
from orchestrator.model.people import Role
from orchestrator.model.record import Outcome
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import answered
from tests.source_tree import ROOT
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .test_http_api import Lab, lab

__all__ = ["lab"]
SHOWN = [
    "status", "status {}", "results {}", "results {} --setup", "job {job}", "devices", "devices A", "devices nothing",
    "export {} --what samples --format json -o -", "export {} --format csv -o -", "watch {}", "report {} -o -",
    "engines", "people list", "projects list", "tokens list", "tokens list anna", "links list", "webhooks list",
    "devices reservations", "host list", "audit --last 3",
]  # fmt: skip
"""Commands that show; `{}`: an experiment, or something else."""
DOES = [
    "cancel {}", "retry {}", "hold A --note x", "release nothing", "hold nothing", "cancel {}", "retry {job}",
    "people add {} --role view --project vision", "people revoke {} --project vision", "people add -",
    "projects add {} --share 2", "projects set nothing --share 2", "devices unreserve 99", "host drain nothing",
]  # fmt: skip
ALONE = [
    "compare ok-a ok-b", "plot ok-a", "import samples x.csv", "import --bundle x.zip", "ledger check", "records",
    "best ok-a --axis x", "rank",
]  # fmt: skip
"""Commands of the farm's machine alone."""
ENDS = [each for each in Outcome if each is not Outcome.LOST]
"""Outcomes after which nothing is tried again."""
Printed = tuple[int, str, str]


@pytest.fixture(scope="module")
def told(lab: Lab) -> dict[str, list[str]]:
    """Experiments of every kind, each twice, and a job of each."""
    settings = Settings(state=lab.state, redis_url=lab.host.farm.redis_url, host="lab")
    found: dict[str, list[str]] = {}
    outcomes = dict[str, Outcome]()
    lab.host.answer = lambda a: answered(a, outcomes.get(a.job.experiment_id, Outcome.OK), "x")
    with client_of(settings) as redis:
        scheduler = Scheduler(settings, lab.ledger, redis)

        def run(name: str) -> bool:
            lab.host.announce()
            scheduler.tick()
            lab.host.claim()
            lab.host.finish()
            return lab.ledger.experiment(name).finished

        for outcome, number in [(each, number) for each in (*ENDS, None) for number in "ab"]:
            name = f"{outcome or 'waits'}-{number}"
            jobs = [make.job(name, block=block) for block in range(2)]
            lab.ledger.submit(name, make.many(2, name=name[:-2]), jobs, by="anna", project="vision")
            found[name] = [job.job_id for job in jobs]
            if outcome is Outcome.CANCELLED:
                lab.ledger.cancel(name)
            elif outcome is not None:
                outcomes[name] = outcome
                eventually(partial(run, name))
    return found


class Both:
    """The same command by both doors."""

    def __init__(self, lab: Lab, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.lab, self._patch, self._captured = lab, patch, captured

    def here(self, words: list[str]) -> Printed:
        self._patch.delenv("FARM_SERVER", raising=False)
        self._patch.setenv("FARM_STATE", str(self.lab.state))
        return self.printed(words)

    def there(self, words: list[str], token: str = "") -> Printed:
        self._patch.delenv("FARM_STATE", raising=False)
        self._patch.setenv("FARM_SERVER", f"http://127.0.0.1:{self.lab.port}")
        self._patch.setenv("FARM_TOKEN", token or self.lab.own)
        return self.printed(words)

    def printed(self, words: list[str]) -> Printed:
        self.lab.host.announce()
        self._captured.readouterr()
        status = main(words)
        found = self._captured.readouterr()
        return status, _fixed(found.out), _fixed(found.err)


def _fixed(text: str) -> str:
    """Return the text without its address and the moments at which something was asked or seen."""
    text = re.sub(r'"(generated_at|seen_at|since|at|earliest|latest)": [0-9.e+]+', r'"\1": 0', text)
    text = re.sub(r"\d\d\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME", text)
    return re.sub(r"http://127\.0\.0\.1:\d+/?", "", text)


@pytest.fixture
def both(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Both:
    monkeypatch.setenv("LOGNAME", "me")
    return Both(lab, monkeypatch, capsys)


def test_a_farm_elsewhere_shows_what_one_here_does(
    both: Both, told: dict[str, list[str]], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    drawn = [(line, chance.choice([*told])) for line in (*SHOWN, *chance.choices(SHOWN, k=6))]
    drawn += [(chance.choice(SHOWN[1:5]), chance.choice(["nothing", "of-none", "ok", "latest"]))]
    for line, name in drawn:
        if "watch" in line and name.startswith("waits"):
            continue
        job = chance.choice(told.get(name, ["nothing"]))
        words = line.replace("{}", name).replace("{job}", job).split()
        words += ["--json"] * (chance.random() < 0.5 and "-o" not in words)
        assert both.there(words) == both.here(words), words


def test_what_is_done_elsewhere_is_done_as_here(both: Both, told: dict[str, list[str]], seed: int) -> None:
    chance = random.Random(seed)
    for line in DOES:
        kind = chance.choice(sorted({name[:-2] for name in told}))
        json_too = ["--json"] * chance.choice([0, 1])
        printed = list[Any]()
        for door, number in ((both.there, "a"), (both.here, "b")):
            own = f"{kind}-{number}"
            words = [*line.replace("{}", own).replace("{job}", told[own][0]).split(), *json_too]
            status, *texts = door(words)
            ids = {**dict.fromkeys((f"{kind}-a", f"{kind}-b"), "OWN"), **dict.fromkeys(told[own], "JOB")}
            for each, word in ids.items():
                texts = [text.replace(each, word) for text in texts]
            printed.append((status, texts))
            if "hold A" in line:
                assert door(["release", "A"])[0] == 0
        assert printed[0] == printed[1], line


FILE = """\
schema_version: 1
name: sent
workload: {network: NETWORK}
sampling: {blocks: 2}
"""


def test_an_experiment_that_is_sent_is_that_of_its_file(
    both: Both, told: dict[str, list[str]], seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "sent.yaml"
    for network in ("lenet", "no-network", "[", random.Random(seed).choice(["lenet", "alexnet"])):
        path.write_text(FILE.replace("NETWORK", network))
        first, second = both.there(["run", str(path), "--json"]), both.here(["run", str(path), "--json"])
        if first[0] == 0:
            sent, same = json.loads(first[1]), json.loads(second[1])
            assert (same.pop("resumed"), sent.pop("resumed") in (True, False)) == (True, True)
            assert sent == same
        else:
            assert first == second and first[0] == 1


def test_who_logs_in_needs_no_more_words(
    both: Both, told: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The login does not count where a farm of this machine is named; what cannot be done from afar says so, and
    makes nothing here. A folder of plans, as `farm infer` leaves it, is no farm; one with a ledger is."""
    kept, url = tmp_path / "config" / "login.json", f"http://127.0.0.1:{both.lab.port}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FARM_REDIS_URL")
    monkeypatch.setenv("FARM_LOGIN", str(kept))

    def farm(*words: str, given: str = "") -> Printed:
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        return both.printed([*words])

    wrong = farm("login", url, "--token-stdin", given="farm_nothing\n")
    assert wrong[0] == 1 and "farm login" in wrong[2] and not kept.exists()
    assert "plain HTTP" in farm("login", "http://farm.lab:1", "--token-stdin", given="x\n")[2]
    assert "--token-stdin" in farm("login", url)[2]
    (tmp_path / ".farm" / "plans").mkdir(parents=True)
    done = farm("login", url, "--token-stdin", given=f"{both.lab.tokens['vision.view']}\n")
    assert done[0] == 0 and "as vision.view: view in vision" in done[2], done
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    listed = json.loads(farm("status", "--json")[1])
    assert {each["experiment"] for each in listed} > told.keys()
    refused = farm("cancel", "waits-a")
    assert refused[0] == 1 and "vision.view may not cancel" in refused[2]
    (tmp_path / "x.csv").write_text("device,network,layer,backend,precision,sample_ms\na,n,,cpu,fp32,1\n")
    for words in random.Random(seed).sample(ALONE, 3):
        afar = farm(*words.split())
        assert afar[0] != 0 and "does not work from afar" in afar[2] and "--state" in afar[2], (words, afar)
    assert [each.name for each in (tmp_path / ".farm").iterdir()] == ["plans"]
    own = farm("status", "--state", str(tmp_path / "own"))
    assert own[0] == 1 and "no farm has run" in own[2]
    assert farm("status", "--state", str(tmp_path / ".farm"))[0] == 1
    assert farm("import", "samples", "x.csv", "--state", str(tmp_path / ".farm"))[0] == 0
    assert [each["name"] for each in json.loads(farm("status", "--json")[1])] == ["x"]
    assert "you are logged in to" in farm("devices")[2]
    assert [farm("logout")[0] for _ in range(2)] == [0, 1] and not kept.exists()


def test_the_notebook_and_the_small_client_see_the_same(lab: Lab, told: dict[str, list[str]]) -> None:
    url = f"http://127.0.0.1:{lab.port}"
    here, there = Farm(lab.state), Farm(url, token=lab.own)
    for name in ("ok-a", "invalid-a"):
        assert here.experiment(name).results().equals(there.experiment(name).results())
        assert here.experiment(name).samples().equals(there.experiment(name).samples())
        assert here.experiment(name).status() == there.experiment(name).status()
    code = f"""
import sys
class Gone:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in "farm kernels orchestrator workers dashboards numpy yaml rich typer".split():
            raise ImportError(name)
sys.meta_path.insert(0, Gone())
sys.modules["pocketfarm_client"] = __import__("client")
from pocketfarm_client import Farm
farm = Farm("{url}", token=sys.stdin.readline().strip())
run = farm.experiment("ok-a").wait(60)
print(run.id, farm.me()["name"], len(run.results()["summaries"]), len(run.jobs()))
"""
    done = subprocess.run([sys.executable, "-c", code], input=lab.tokens["vision.view"], cwd=ROOT,
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout.split() == ["ok-a", "vision.view", "1", "2"], done.stderr


def test_a_farm_that_does_not_answer_says_so(unused: int) -> None:
    from client import Farm as Small

    with pytest.raises(Refused) as found:
        Small(f"http://127.0.0.1:{unused}", token="x").me()
    assert found.value.cause == "service_down" and str(unused) in found.value.detail and found.value.remedy


@pytest.fixture
def unused() -> Iterator[int]:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_token_gives_its_person_s_view(both: Both, told: dict[str, list[str]]) -> None:
    theirs = both.there(["status", "ok-a"], both.lab.person("stranger", Role.VIEW, "speech"))
    assert theirs[0] == 1 and "there is no experiment" in theirs[2]
