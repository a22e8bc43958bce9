"""The morning report: what got worse, better, unknown, missing, what to do next; as a page, as Markdown, and sent."""

from __future__ import annotations

import json
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from farm.tasks import nightly as keeper
from orchestrator.analysis.comparison import Compared, compare
from orchestrator.analysis.history import Night as Column
from orchestrator.analysis.history import history
from orchestrator.analysis.statistics import Interval
from orchestrator.ledger import Ledger
from orchestrator.nightly import Night, NightRow, Told, Wave
from orchestrator.nightly.past import figures_of
from orchestrator.nightly.summary import summary
from orchestrator.report.compared.table import figures
from orchestrator.report.nights import Morning, headline, morning, morning_markdown, morning_page
from orchestrator.report.nights.morning import next_steps
from orchestrator.report.nights.tell import morning_of, tell
from orchestrator.system.config import Settings
from tests.unit.comparison.conftest import farm, ledger
from tests.unit.comparison.made import measured, one
from tests.unit.imports.conftest import Farm
from tests.unit.report.test_report import EVIL, Page

from .made import judged, kept, missing, nights

__all__ = ["farm", "ledger"]
pytestmark = pytest.mark.unit

WAVES = (Wave(kind="first", part="lenet", experiment_id="nightly-1", number=0, blocks=6),)


def factor(number: int, device: str, network: str, side: str) -> float:
    """B is 6 % slower with m in the last night, A 8 % faster with n; C moved on both sides seven nights before."""
    found = 1.08 if device == "C" and number >= 10 else 1.0
    if number == 17 and side == "b":
        found *= {("B", "m"): 1.06, ("A", "n"): 0.92}.get((device, network), 1.0)
    return found


@pytest.fixture(scope="module")
def many() -> list[Night]:
    """Eighteen nights; from the last one a phone is away, and one row is unknown."""
    found = nights(18, factor)
    last = found[-1]
    rows = tuple(
        row.model_copy(update={"compared": replace(row.compared, verdict="unknown", needs_blocks=9)})
        if (row.compared.device, row.compared.network) == ("A", "l")
        else row
        for row in last.rows
    )
    more = {"rows": rows, "missing": (missing("D"),), "outcome": "partial", "waves": WAVES}
    return [*found[:-1], last.model_copy(update=more)]


def of(found: list[Night]) -> Morning:
    """The report of the last of these nights, without a ledger: nobody knows what ran."""
    columns = [Column(id=night.night_id, at=night.due_at) for night in found]
    return morning(found[-1], history("nightly", columns, [each for night in found for each in figures_of(night)]))


@pytest.fixture(scope="module")
def found(many: list[Night]) -> Morning:
    return of(many)


@pytest.fixture(scope="module")
def page(found: Morning) -> str:
    return morning_page(found)


def test_the_page_says_it_all_in_its_head(found: Morning, page: str) -> None:
    assert headline(found) == "The night is partial: 1 worse; 1 better; 1 unknown; 1 device missing."
    text, parsed, words = page, Page(page), " ".join(page.split())
    relied = f"<b>Usable with care</b>: 1 device missing; 1 of {len(found.night.rows)} rows unknown; and 1 more."
    assert 0 < words.index(relied) < words.index("The night is partial")
    assert not parsed.open and "script" not in parsed.tags and "http:" not in text and "https:" not in text
    headings = ("What to do next", "What got worse", "What got better")
    following, worse, better = (words.index(f"<h2>{each}") for each in headings)
    assert following < worse < better
    steps = words[following:worse]
    assert "latency is worse in 1 configuration on B (confirmed by a repetition)" in steps
    assert "farm compare nightly-1 --sides side=baseline,candidate --where device=B" in steps
    assert "Look at D: it is not connected." in steps and "Not the candidate: C moved on both sides" in steps
    assert "9 more blocks a side would settle 1 of them: a larger budget." in steps
    row = next(row for row in found.rows["unknown"] if row.compared.needs_blocks)
    full = replace(found, rows={**found.rows, "unknown": [_with_blocks(row, found.night.suite.most_rounds)]})
    assert any("would settle 1 of them: most_rounds above 60." in text for text, _ in next_steps(full))
    assert 'title="worse"' in text and "▲ worse +" in text and 'title="better"' in text and "▼ better -" in text
    row = found.rows["worse"][0].compared
    assert row.a and row.b and f"latency: {row.a:.1f} ms to {row.b:.1f} ms" in words, "what the ratio is of"
    assert "of 95 % for that row alone" in words and "grey is the margin" in words
    assert 'class="ratio"' in text and "farm export nightly-1" in text and "VIRTUAL" in text
    assert "baseline as the experiment says, candidate threads=4<" in words
    assert "the colour of whose change it is" in words and "3 series" in words and words.count("<figure>") == 3


def _with_blocks(row: NightRow, blocks: int) -> NightRow:
    return row.model_copy(update={"compared": replace(row.compared, blocks=(blocks, blocks))})


def test_the_summary_names_who_could_not_be_told(found: Morning) -> None:
    told = (Told(to="a.txt", at=1.0), Told(to="mailto", at=1.0, error="the server refuses it"))
    assert summary(found.night.model_copy(update={"told": told})).endswith(
        "\n  not told: mailto: the server refuses it"
    )


def test_markdown_says_the_same(found: Morning) -> None:
    text = morning_markdown(found)
    assert text.splitlines()[2].startswith("**Usable with care**: 1 device missing;")
    assert "**The night is partial: 1 worse; 1 better; 1 unknown; 1 device missing.**" in text
    assert "- B VIRTUAL: m opencl fp32, latency: **worse: +" in text and "- D: it is not connected" in text
    assert "C: 3 series +8.0 to" in text or "C: 3 series +7.9 to" in text or "C: 3 series +" in text


def test_a_night_that_did_not_run_is_as_loud() -> None:
    night = judged(3, [], (), outcome="not_run", began_at=None, problems=("the farm was down",))
    found = of([night])
    text = morning_page(found)
    assert "<b>Not usable</b>: it did not run." in text
    assert "The night did not run. Nothing is known of it." in text and "the farm was down" in text
    assert 'class="headline bad"' in text and "did not run" in morning_markdown(found)


def test_an_interval_that_says_nothing_stands_nowhere(seed: int) -> None:
    """Every form of a night has the same words in its place; squares have a word, and red is what is worse."""
    random, sides = np.random.default_rng(seed), ([], [])
    for number in range(40):
        rounds, noise = int(random.integers(2, 9)), float(random.choice([0.001, 0.03, 0.3, 1.0, 3.0]))
        for late, rows in enumerate(sides):
            values = np.exp(random.normal(0.1 * random.choice([0, 0, late]), noise, rounds)).tolist()
            rows += measured(values, late=20.0 * late, device=f"p{number}")
    night = judged(1, list(compare(*sides)), tuple(f"p{number}" for number in range(40)))
    rows = {row.compared.device: row.compared for row in night.rows}
    silent = {name: str(row.unresolved) for name, row in rows.items() if row.unresolved}
    assert 0 < len(silent) < len(rows)
    for name, row in rows.items():
        within = row.interval or (row.unresolved and Interval(low=row.unresolved.above, high=row.unresolved.below or 0))
        own = [[each.values["latency"] for each in side if each.device == name] for side in sides]
        wide = within.half_width > median(own[1]) / median(own[0]) / 2
        assert (name in silent) == (wide and within.low <= 1 <= within.high)
    found = of([night])
    page, written = morning_page(found), json.loads(night.model_dump_json())["rows"]
    told = {each["compared"]["device"]: each["compared"] for each in written}
    forms = {
        "summary": dict(re.findall(r"^  \S+: (p\d+): .*?latency: (.*?)(?:;.*)?$", summary(night), re.M)),
        "page": dict(re.findall(r'<td class="cell">(p\d+)<.*<td>(.*?)</td></tr>', page)),
        "comparison": {name: figures(row)[2] for name, row in rows.items()},
    }
    for name, form in forms.items():
        assert {each: text for each, text in form.items() if "not resolved" in text} == {
            each: text for each, text in silent.items() if each in form
        }, name
        assert len(form.keys() & silent.keys()) > 2
    assert {name for name, each in told.items() if each["interval"] is None and each["ratio"] is None} == silent.keys()
    squares = re.findall(r'<td title="([a-z ]+)" style="([^"]*)">([^<]*)</td>', page)
    assert len(squares) == len(rows)
    for said, style, text in squares:
        assert said in ("same", "unavailable") or said in text
        assert ("--worse" in style, "--better" in style) == (said == "worse", said == "better")
        assert ("--muted" in style) == (said in ("unknown", "missing", "not confirmed"))


def test_what_resolves_a_ratio_is_told(seed: int) -> None:
    """The rounds that it asks for tell it in most cases, half of them in few."""
    random, counts = np.random.default_rng(seed), []
    while len(counts) < 60:
        noise, rounds = float(random.uniform(0.3, 1.0)), int(random.integers(5, 12))

        def drawn(count: int, noise: float = noise) -> Compared:
            sides = ([0.0] * count, random.normal(0, noise, count).tolist())
            return one(*(measured(np.exp(each).tolist(), late=20.0 * late) for late, each in enumerate(sides)))

        if (first := drawn(rounds)).unresolved and (needs := first.unresolved.needs_blocks):
            counts.append(
                [sum(drawn(most).unresolved is None for _ in range(4)) for most in (2 * needs, max(2, needs // 2))]
            )
    enough, half = np.sum(counts, 0) / 4 / len(counts)
    assert enough > 0.75 and half < enough - 0.2


def test_a_difference_that_was_not_repeated_is_not_called_worse(many: list[Night], found: Morning) -> None:
    last = many[-1]
    rows = tuple(
        row.model_copy(update={"repeated": replace(row.compared, verdict="same", ratio=1.0)})
        if row.compared.verdict == "different"
        else row
        for row in last.rows
    )
    night = last.model_copy(update={"rows": rows})
    again = morning(night, found.history)
    assert len(again.rows["not confirmed"]) == 2 and not again.rows["worse"]
    text = morning_markdown(again)
    assert "Stop the candidate" not in text and "not confirmed; first worse: +" in text


def test_names_from_outside_make_no_markup() -> None:
    found = nights(6, lambda *_: 1.0, (EVIL, "B"), ("<i>n",))
    last = found[-1].model_copy(update={"missing": (missing(EVIL),), "problems": (EVIL,), "outcome": "partial"})
    report = of([*found[:-1], last])
    text = morning_page(report)
    assert EVIL not in text and "<i>n" not in text and not Page(text).open
    assert EVIL not in re.sub("`[^`\n]*`", "", morning_markdown(report))


def test_the_command_prints_writes_and_refuses(farm: Farm, ledger: Ledger, many: list[Night]) -> None:
    kept(ledger, many)
    code, out, err = farm("morning", "nightly", "-o", "m.html", "--markdown", "m.md")
    assert code == 0 and "written to m.html" in err and out == ""
    code, out, _ = farm("morning", "nightly", "--night", "nightly@016")
    assert code == 0 and "**Nothing changed.**" in out
    assert morning_of(ledger, many[-1]).history.nights[-1].id == "nightly@017"
    told = json.loads(farm("morning", "nightly", "--json")[1])
    assert told["headline"].startswith("The night is partial") and told["night"]["night_id"] == "nightly@017"
    code, _, err = farm("morning", "nightly", "--night", "x")
    assert code == 1 and "has no night 'x'; its last ones are nightly@013" in err
    assert farm("morning", "weekly")[0] == 1


class Hook(BaseHTTPRequestHandler):
    """A webhook that keeps what it was sent."""

    got: list[dict[str, object]]

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Mail(socketserver.StreamRequestHandler):
    """Takes one mail by SMTP, and keeps its text."""

    got: list[str]

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.got.append(text.decode())
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 well\r\n")
            if word == b"QUIT":
                return


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_it_is_sent_to_a_webhook_and_by_mail_and_what_fails_is_told(found: Morning) -> None:
    hook, mail = type("H", (Hook,), {"got": []}), type("M", (Mail,), {"got": []})
    with (
        serving(HTTPServer(("127.0.0.1", 0), hook)) as port,
        serving(socketserver.TCPServer(("127.0.0.1", 0), mail)) as smtp,
    ):
        to = (
            "team",
            f"mailto://127.0.0.1:{smtp}?to=a@example.org&from=farm@example.org",
            "nobody",
            "json://127.0.0.1:9/x",
            "x://y",
        )
        told = tell(found, to, {"team": f"json://user:hidden@127.0.0.1:{port}/nights"})
    assert [bool(each.error) for each in told] == [False, False, True, True, True], told
    assert told[0].to == "team" and "hidden" not in str(told)
    (message,) = hook.got
    assert (
        message["type"] == "failure"
        and message["title"] == "nightly: The night is partial: 1 worse; 1 better; 1 unknown; 1 device missing."
    )
    assert "latency is worse in 1 configuration on B" in str(message["message"])
    (text,) = mail.got
    assert "To: a@example.org" in text and "nightly-017.html" in text and "Subject: " in text
    assert "nobody" in told[2].error and "FARM_TELL" in told[2].error and "no address" in told[4].error


def test_the_keeper_tells_in_files_and_to_whom_the_suite_names(
    ledger: Ledger, many: list[Night], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = many[-1].suite.model_copy(update={"tell": ("nobody",)})
    night = many[-1].model_copy(update={"suite": suite})
    text, page, nobody = keeper.tell(Settings(state=tmp_path), ledger, night)
    assert "nightly" in Path(text.to).read_text() and "What to do next" in Path(page.to).read_text()
    assert (text.error, page.error, nobody.to) == ("", "", "nobody") and "FARM_TELL" in nobody.error
    monkeypatch.setattr("orchestrator.report.nights.morning_page", lambda *_: 1 / 0)
    _, failed = keeper.tell(Settings(state=tmp_path), ledger, night)
    assert failed.to == "morning report" and "ZeroDivisionError" in failed.error
