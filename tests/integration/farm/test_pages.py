"""The farm's pages in Chromium, over a real farm with a virtual phone: what is shown, live, done, and refused."""

from __future__ import annotations

import http.client
import io
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from dashboards.web.access import token_of
from farm.endpoints import read, settings_for
from farm.parts.part import free_port
from farm.web.pages import Listening, app_of
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.exchange.samples import import_samples
from orchestrator.ledger import Hold, Ledger
from orchestrator.model.device import Health
from orchestrator.model.experiment import Conditions
from orchestrator.model.people import Kind, Role
from orchestrator.model.record import Outcome
from orchestrator.model.rights import Terms
from tests.integration.farm.second_browser import firefox
from tests.integration.farm.test_up import Up, farm
from tests.integration.orchestrator.ledgers import begun, record_of
from tests.servers import required
from tests.unit.orchestrator import make
from tests.waiting import eventually
from workers.connection.adb import server_of
from workers.devices.device_lock import device_lock
from workers.devices.lookup import find_phone
from workers.discovery.crash_recovery import left_behind
from workers.session.saved_settings import SavedSettings

READY = Health.READY
HOSTILE = '"><script>document.title="owned"</script><img src=x onerror=alert(1)>{{ 7*7 }}'
GROUP = HOSTILE.replace("/", "")
Answer = tuple[int, http.client.HTTPMessage, str]
SPEC = """\
schema_version: 1
name: seen
workload: {network: lenet}
devices: {where: source == "virtual", count: all}
matrix: {backend: [cpu]}
sampling: {blocks: 2, warmup: 1, samples: 3}
"""


class Farm:
    """A farm with an experiment that is over, and one with hostile names that waits for a phone that is away."""

    def __init__(self, up: Up) -> None:
        self.up, self.state = up, up.state
        found = read(up.state)
        assert found is not None and found.pages_url
        self.url, self.port = found.pages_url.rstrip("/"), found.pages_port
        self.token = token_of(up.state)
        settings = settings_for(up.state)
        self.ledger = Ledger(settings.ledger)
        self.hostile = make.job("hostile-1", candidates=(f"A{HOSTILE}",))
        self.ledger.submit(
            "hostile-1", make.many(3, name="hostile", description=HOSTILE),
            [self.hostile, *(make.job("hostile-1", block=n, candidates=(f"A{HOSTILE}",)) for n in (1, 2))],
        )  # fmt: skip
        lost = record_of(
            begun(self.ledger, self.hostile), outcome=Outcome.LOST, cause="transport_lost",
            reasons=(HOSTILE,), evidence=(HOSTILE, "last line"),
        )  # fmt: skip
        self.ledger.keep(lost)
        soon = time.time() + 3600
        reserved = Hold("", HOSTILE, 0.0, soon + 86_400, HOSTILE, begins=soon)
        self.ledger.standing.reserve([f"A{HOSTILE}"], reserved)
        people = self.ledger.people
        people.add(GROUP, Kind.GROUP)  # no person: pages stay open
        people.add_project(HOSTILE, HOSTILE, Terms(2.0, 40.0, 9))
        people.grant(GROUP, Role.SUBMIT, HOSTILE)
        spec = up.state.with_name("seen.yaml")
        spec.write_text(SPEC)
        with settings_client(settings) as client:
            inventory = Inventory(client)
            eventually(lambda: {"nexus_5"} <= {d.facts.profile for d in inventory.devices() if d.state.health == READY})
        done = farm("run", str(spec), "--state", str(up.state), "--wait", "--timeout", "180 s")
        assert done.returncode == 0, done.stderr
        (self.seen,) = (each.id for each in self.ledger.experiments() if each.experiment.name == "seen")
        self.job = self.ledger.jobs(self.seen)[0].job_id
        self.serial = self.ledger.listed.attempts(self.job)[0].serial

    def get(self, path: str, **headers: str) -> Answer:
        return asked(self.port, path, **headers)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return asked(self.port, path, urlencode(fields), **kind, **headers)


def asked(port: int, path: str, body: str | None = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET" if body is None else "POST", path, body, headers)
    reply = connection.getresponse()
    try:
        return reply.status, reply.headers, reply.read().decode()
    finally:
        connection.close()


@contextmanager
def settings_client(settings: Any) -> Iterator[Any]:
    client = client_of(settings)
    yield client
    client.close()


@pytest.fixture(scope="module")
def pages() -> Iterator[Farm]:
    for binary in ("redis-server", "adb", "chromium"):
        required(binary)
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        up = Up(Path(folder) / "farm", "--profile", "nexus_5")
        try:
            up.wait_until_ready()
            found = Farm(up)
            yield found
            found.ledger.close()
        finally:
            up.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=required("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Page]:
    """A page of a context of its own, which notes what a page must not do."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    yield page
    context.close()
    assert wrong == []


def addresses(pages: Farm) -> list[str]:
    hostile = quote(f"A{HOSTILE}", safe="")
    return [
        "/", "/queue", "/experiments", f"/experiments/{pages.seen}", "/experiments/hostile-1", f"/jobs/{pages.job}",
        f"/jobs/{pages.hostile.job_id}", f"/devices/{pages.serial}", f"/devices/{hostile}", "/nights", "/calendar",
        "/hosts", "/ranking", "/charts", "/audit", "/glossary", "/sign-in", "/links", "/password",
        "/experiments/nothing", "/nowhere",
    ]  # fmt: skip


LOOKS = [(1280, "light", 1), (390, "dark", 2)]


@pytest.mark.parametrize(("width", "scheme", "every"), LOOKS)
def test_every_page_is_readable_by_everybody(
    pages: Farm, chromium: Browser, width: int, scheme: Any, every: int
) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, faults = context.new_page(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    if width == 390:
        signed_in(page, pages)
    faults += faults_of(page, pages, width, scheme, every)
    context.close()
    assert faults == []


@pytest.mark.parametrize(("width", "scheme", "every"), LOOKS)
def test_every_page_is_readable_in_a_second_browser(pages: Farm, width: int, scheme: str, every: int) -> None:
    with firefox(scheme, width, 900) as page:
        if width == 390:
            page.goto(f"{pages.url}/sign-in#{pages.token}")
            page.evaluate(
                "[...document.querySelectorAll('button')].find(each => each.textContent === 'Sign in').click()"
            )
            eventually(lambda: page.evaluate("document.body.innerText.includes('Sign out')"))
        assert faults_of(page, pages, width, scheme, every) == []


def faults_of(page: Any, pages: Farm, width: int, scheme: str, every: int) -> list[str]:
    """Desk and phone, light and dark, without a session and with all forms open: axe-core finds nothing, nothing runs
    over the edge, nothing is run."""
    faults: list[str] = []
    looks = f"innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches"
    assert page.evaluate(looks)
    if width == 390:
        pages.ledger.people.add("berta", Kind.PERSON)
        pages.ledger.people.tokens.make("berta", Role.VIEW, "", HOSTILE, None)
    of_people = ["/people/berta", "/people", f"/people/{quote(GROUP, safe='')}", "/me", "/projects"] * (width == 390)
    for number, address in enumerate([*of_people, *addresses(pages)]):
        page.goto(pages.url + address)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found = Axe().run(page).response["violations"] if number % every == 0 else []
        faults += [f"{address}: {each['id']} {each['nodes'][0]['html']}" for each in found]
        faults += [f"{address}: {over} px over the edge"] * (over > 0)
        owned = "document.title === 'owned' || document.querySelector('main :not(picture) > img') !== null"
        faults += [f"{address}: owned"] * page.evaluate(owned)
    pages.ledger.people.end("berta")
    return faults


def test_the_farm_tells_the_address_of_its_api(pages: Farm) -> None:
    told = re.search(r'"api_url": "(http://127\.0\.0\.1:\d+)(/api/v1)"', pages.up.log.read_text())
    assert told is not None and told[1] == pages.url
    assert f"for programs: {told[1]}{told[2]}/openapi.json" in pages.up.log.read_text()
    assert [pages.get(f"{told[2]}{path}")[0] for path in ("/openapi.json", "/devices")] == [200, 401]
    status, _, body = pages.get(f"{told[2]}/devices", Authorization=f"Bearer {pages.token}")
    assert status == 200 and "nexus_5" in body


def test_names_from_outside_are_shown_as_they_are(pages: Farm, browser: Page) -> None:
    browser.goto(f"{pages.url}/jobs/{pages.hostile.job_id}")
    expect(browser.locator("pre")).to_contain_text(HOSTILE)
    expect(browser.locator(".story")).to_contain_text(HOSTILE)
    browser.locator("main a", has_text='A">').first.click()
    expect(browser.locator("h1")).to_have_text(f"A{HOSTILE}")
    browser.goto(f"{pages.url}/?q={quote(HOSTILE)}&show={quote(HOSTILE)}")
    expect(browser.locator("input[name=q]")).to_have_value(HOSTILE[:200])


def test_what_was_imported_under_a_serial_is_tagged(pages: Farm, tmp_path: Path) -> None:
    table = tmp_path / "elsewhere.csv"
    table.write_text(f"device,network,layer,backend,precision,sample_ms\n{pages.serial},n,,cpu,fp32,1.5\n")
    import_samples(pages.ledger, table)
    _, _, text = pages.get(f"/devices/{pages.serial}")
    rows = re.findall(r'<tr id="l-p-.*?</tr>', text)
    assert ["IMPORT" in row for row in rows] == ["elsewhere" in row for row in rows] and "elsewhere" in rows[0]


def test_pages_lead_to_each_other(pages: Farm, browser: Page) -> None:
    """Links lead from the fleet to a device, a job that it ran, its experiment, the report, and back to the device.
    A report that was written into a file leads to the pages, too."""
    browser.goto(pages.url)
    browser.get_by_role("link", name=pages.serial).click()
    browser.locator("#history tbody tr", has_text=pages.seen).first.locator("a").first.click()
    expect(browser.locator(".story")).to_contain_text("Attempt 1")
    browser.locator(".crumbs a").last.click()
    expect(browser.locator("h1")).to_have_text("seen")
    browser.get_by_role("link", name="Report", exact=True).click()
    expect(browser).to_have_url(re.compile("/report"))
    expect(browser.locator("svg").first).to_be_attached()
    expect(browser.locator("h1")).to_have_text("seen")
    written = pages.state.with_name("report.html")
    assert farm("report", pages.seen, "-o", str(written), "--state", str(pages.state)).returncode == 0
    with Image.open(io.BytesIO(browser.screenshot(full_page=True))) as picture:
        rows = np.asarray(picture.convert("L"))
    drawn = np.flatnonzero(np.ptp(rows, axis=1) > 8)
    assert len(rows) > 1500 and max(np.diff(drawn)) < 200, "a capture of the whole page is drawn to its end"
    browser.locator("#results .device a").click()
    expect(browser).to_have_url(f"{pages.url}/devices/{pages.serial}")
    browser.goto(written.as_uri())
    browser.locator("#results a[href*='/jobs/']").first.click()
    expect(browser).to_have_url(re.compile(f"^{re.escape(pages.url)}/jobs/"))
    expect(browser.locator(".story")).to_be_visible()


def test_the_page_of_what_is_over_has_its_figures_and_downloads(pages: Farm, browser: Page, tmp_path: Path) -> None:
    """Both are as `farm results` and `farm export` write them; all that is known of a word is one click away."""
    browser.goto(f"{pages.url}/experiments/{pages.seen}")
    printed = farm("results", pages.seen, "--state", str(pages.state)).stdout
    told = browser.locator("p.usable").inner_text()
    assert " ".join(printed.split()).startswith(told[0].lower() + told.partition(".")[0][1:])
    for cell in browser.locator("#results tbody").first.locator("tr:not(.device) td").all_inner_texts():
        assert cell in printed
    for name, form in (("CSV", "csv"), ("JSON", "json"), ("Parquet", "parquet")):
        with browser.expect_download() as download:
            browser.get_by_role("link", name=name, exact=True).click()
        written = tmp_path / f"written.{form}"
        assert farm("export", pages.seen, "-o", str(written), "--state", str(pages.state)).returncode == 0
        assert download.value.suggested_filename == f"{pages.seen}-samples.{form}"
        assert Path(download.value.path()).read_bytes() == written.read_bytes()
    assert pages.get(f"/experiments/{pages.seen}/samples.xlsx")[0] == 404
    browser.get_by_role("link", name="Glossary").click()
    expect(browser.locator("main")).to_contain_text("farm explain")


def test_charts_without_a_prometheus_say_where_they_come_from(pages: Farm, browser: Page) -> None:
    browser.goto(f"{pages.url}/charts/experiment")
    expect(browser.locator("main")).to_contain_text("Source: this farm's ledger and its exporter")
    expect(browser.locator("figure.chart").nth(2)).to_be_attached()
    browser.goto(f"{pages.url}/charts/fleet")
    expect(browser.locator("ul.facts li", has_text="Parts that answer").locator("b")).to_have_text("2")
    browser.goto(f"{pages.url}/charts/experiment")
    address = browser.locator("figure.chart img").first.get_attribute("src")
    status, _, text = pages.get(str(address))
    assert status == 200 and pages.serial in text and "no figures" not in text


def test_what_changes_is_shown_within_a_second_and_keeps_the_focus(pages: Farm, browser: Page) -> None:
    browser.goto(pages.url)
    row = browser.locator(f"[id='l-{pages.serial}']")
    row.locator("a").first.focus()
    browser.evaluate("window.stays = true")
    pages.ledger.standing.hold([pages.serial], "anna", None, "new battery")
    began = time.monotonic()
    browser.wait_for_function("serial => document.getElementById('l-' + serial).innerText.includes('anna')",
                              arg=pages.serial, polling=10)  # fmt: skip
    took_s = time.monotonic() - began
    print(f"shown after {took_s:.2f} s")
    assert browser.evaluate("document.activeElement.textContent") == pages.serial
    assert browser.evaluate("window.stays"), "the page was not loaded again"
    pages.ledger.standing.end_hold(pages.serial)
    browser.wait_for_function("serial => !document.getElementById('l-' + serial).innerText.includes('anna')",
                              arg=pages.serial)  # fmt: skip


def test_who_shows_the_token_may_act(pages: Farm, browser: Page) -> None:
    """The printed link signs in; a hold bears the name; what was done is told; signing out ends it."""
    browser.goto(f"{pages.url}/devices/{pages.serial}")
    assert browser.locator("form[action='/do/hold']").count() == 0
    browser.goto(f"{pages.url}/sign-in#{pages.token}")
    expect(browser).not_to_have_url(re.compile("#"))
    browser.get_by_label("Your name").fill("anna <b>")
    browser.get_by_role("button", name="Sign in").click()
    browser.get_by_role("button", name="Sign out").wait_for()
    browser.goto(f"{pages.url}/devices/{pages.serial}")
    browser.get_by_text("Hold ...").click()
    browser.get_by_label("For how long").fill("2 h")
    browser.get_by_role("button", name="Hold it as anna <b>").click()
    expect(browser.locator(".said")).to_contain_text("is held by anna <b>")
    assert [(each.serial, each.who) for each in pages.ledger.standing.holds()] == [(pages.serial, "anna <b>")]
    browser.get_by_role("button", name="Release").click()
    expect(browser.locator(".said")).to_contain_text("released")
    assert pages.ledger.standing.holds() == []
    browser.goto(f"{pages.url}/jobs/{pages.hostile.job_id}")
    browser.get_by_role("button", name="Cancel this job").click()
    expect(browser.locator(".said")).to_contain_text("cancelled 1 job")
    assert pages.ledger.listed.job(pages.hostile.job_id).state == "cancelled"
    for button, state in (("Drain", "drained"), ("Resume", "ready")):
        browser.goto(f"{pages.url}/hosts")
        browser.get_by_role("button", name=button).click()
        expect(browser.locator(".said")).to_contain_text(f" is {state}")
    assert [row.act for row in pages.ledger.audit.newest(2)] == ["resume host", "drain host"]
    browser.get_by_role("button", name="Sign out").click()
    browser.get_by_role("link", name="Sign in").wait_for()


def signed_in(browser: Page, pages: Farm) -> None:
    browser.goto(f"{pages.url}/sign-in#{pages.token}")
    browser.get_by_role("button", name="Sign in").click()
    browser.get_by_role("button", name="Sign out").wait_for()


def test_what_was_lost_or_failed_is_tried_again(pages: Farm, browser: Page) -> None:
    """One job from its page, and all of an experiment from its own; nobody without a session sees the buttons."""
    failed = [row.job for row in pages.ledger.jobs("hostile-1") if row.job.block]
    addresses = (f"{pages.url}/jobs/{failed[0].job_id}", f"{pages.url}/experiments/hostile-1")
    for job in failed:
        pages.ledger.keep(record_of(begun(pages.ledger, job), outcome=Outcome.FAILED, cause="build_failed"))
    for address in addresses:
        browser.goto(address)
        assert browser.get_by_role("button", name="Retry").count() == 0
    signed_in(browser, pages)
    for address, told in zip(addresses, ("1 job waits again", "1 job waits again"), strict=True):
        browser.goto(address)
        assert browser.locator(".said").count() == 0, "told twice"
        browser.get_by_role("button", name="Retry").click()
        expect(browser.locator(".said")).to_have_text(told)
        expect(browser.get_by_role("button", name="Retry")).to_have_count(0)
    assert [pages.ledger.listed.job(job.job_id).state for job in failed] == ["waiting", "waiting"]


def test_what_a_crash_left_changed_is_put_back(pages: Farm, browser: Page) -> None:
    """Nothing is done while a session has the phone, and that is said; then the settings are as before. The worker,
    which would do it by itself, is held up."""
    settings = settings_for(pages.state)
    phone = find_phone(pages.serial, server_of(settings))

    def brightness() -> str:
        return phone.shell(["settings", "get", "system", "screen_brightness"]).stdout.decode().strip()

    before = brightness()
    (worker,) = (each for each in pages.up.family() if each.cmdline()[2:] == ["farm.parts.start", "workers.host"])
    try:
        with device_lock(settings.state, pages.serial, wait_s=20.0):
            SavedSettings(settings.state, phone).prepare(Conditions(screen_dimmed=True))
            assert brightness() == "1" != before
            browser.goto(f"{pages.url}/devices/{pages.serial}")
            browser.get_by_text("left changed").wait_for()
            assert browser.get_by_role("button", name="Put back").count() == 0
            signed_in(browser, pages)
            browser.goto(f"{pages.url}/devices/{pages.serial}")
            browser.get_by_role("button", name="Put back").click()
            expect(browser.locator(".said.bad-news")).to_contain_text("a session works on the device")
            assert brightness() == "1"
            worker.suspend()
        browser.get_by_role("button", name="Put back").click()
        expect(browser.locator(".said")).to_have_text(f"{pages.serial}: screen, awake")
        assert brightness() == before and left_behind(settings.state) == ()
    finally:
        worker.resume()
    browser.get_by_role("button", name="Put back").wait_for(state="detached")


def test_nobody_else_may(pages: Farm) -> None:
    """Nothing is done without a session, with a wrong token, with a form of another page, or under another name."""
    target = {"target": "hostile-1", "form_token": "guess"}
    status, headers, _ = pages.post("/do/cancel", target)
    assert (status, headers["Location"]) == (303, "/sign-in")
    status, _, text = pages.post("/sign-in", {"token": "guess"})
    assert status == 403 and "not the token" in text
    status, headers, _ = pages.post("/sign-in", {"token": pages.token, "back": "//evil.example"})
    assert (status, headers["Location"]) == (303, "/")
    kept = headers["Set-Cookie"].partition(";")[0]
    assert "HttpOnly" in headers["Set-Cookie"] and "samesite=strict" in headers["Set-Cookie"].lower()
    for more in ({}, {"Origin": "http://evil.example"}):
        for deed in ("cancel", "retry", "hold", "release", "restore"):
            status, headers, _ = pages.post(f"/do/{deed}", {**target, "target": pages.serial}, Cookie=kept, **more)
            assert (status, headers["Location"]) == (303, "/sign-in")
        pages.post("/do/cancel", target, Cookie=kept, **more)
    assert pages.ledger.standing.holds() == []
    assert pages.get("/do/cancel")[0] in (404, 405)
    assert pages.ledger.counts("hostile-1").get("waiting"), "nothing was cancelled"
    assert pages.get("/", Host="evil.example")[0] == 421
    status, headers, _ = pages.get("/static/../app.py")
    assert status == 404
    policy = pages.get("/")[1]["Content-Security-Policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "script" not in pages.get(f"/experiments/{pages.seen}/report")[1]["Content-Security-Policy"]


def test_what_is_not_there_leads_on(pages: Farm) -> None:
    for path in ("/experiments/nothing", "/jobs/nothing", "/devices/nothing", "/nights/nothing", "/nowhere"):
        status, _, text = pages.get(path)
        assert status == 404 and 'href="/experiments"' in text, path
    assert pages.get("/queue?from=99999999999999999999")[0] == 200


def test_the_command_says_where_the_pages_are(pages: Farm) -> None:
    done = farm("web", "--state", str(pages.state))
    assert done.stdout.strip() == pages.url + "/" and f"/sign-in#{pages.token}" in done.stderr
    assert pages.token not in (pages.state / "logs" / "pages.log").read_text()


@contextmanager
def served(state: Path, port: int) -> Iterator[None]:
    server = uvicorn.Server(
        uvicorn.Config(app_of(state, Listening(port=port)), port=port, log_config=None, timeout_graceful_shutdown=1)
    )
    turns = threading.Thread(target=server.run)
    turns.start()
    try:
        eventually(lambda: server.started)
        yield
    finally:
        server.should_exit = True
        turns.join(30)


def test_pages_without_a_farm_show_the_ledger(browser: Page, tmp_path: Path) -> None:
    """No farm runs, and each page says so; an open page finds the ledger by itself once there is one, and the pages
    too, once they are back."""
    state, port = tmp_path / "state", free_port()
    link = browser.locator("#link")
    with served(state, port):
        assert "no farm runs" in asked(port, "/")[2] and asked(port, "/queue")[0] in (400, 503)
        browser.goto(f"http://127.0.0.1:{port}/queue")
        expect(browser.locator(".away")).to_contain_text("there is no ledger")
        with Ledger(f"sqlite:///{state}/ledger.sqlite") as ledger:
            assert "There is no experiment yet" in asked(port, "/experiments")[2]
            ledger.submit("first-1", make.many(1), [make.job()])
            browser.get_by_role("heading", name="Why jobs wait").wait_for()
            expect(browser.locator(".away")).not_to_contain_text("there is no ledger")  # a page is renewed part by part
        status, _, text = asked(port, "/queue")
        assert status == 200 and "no scheduler says why" in text and "first-1" in text
        expect(link).to_have_text("")
    expect(link).to_contain_text("not connected")
    with served(state, port):
        expect(link).to_have_text("", timeout=30_000)
        with Ledger(f"sqlite:///{state}/ledger.sqlite") as ledger:
            ledger.people.add("anna", Kind.PERSON)
        status, _, text = asked(port, "/sign-in")
        assert status == 200 and str(state) not in text, "who is not known is told of no folder"
