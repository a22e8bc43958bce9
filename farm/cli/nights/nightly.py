"""`farm nightly`: suites that compare two sides, once or every night."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from farm.access import COMMAND_LINE, open_inventory, open_ledger, open_site, settings_of, site_of, user_by
from farm.cli.output import HERE, Common, argument, day, group_of, is_yaml, log, option, out, print_json, say, show_done
from orchestrator.model.errors import FarmError, NoData, SpecError
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.nightly import Night, Suite
    from orchestrator.system.config import Settings

NOT_WELL = 1
SHOWN = 30
LOOK_S = 0.5
DAY_S = 86400.0


TestTellOption = Annotated[
    bool, option("--test-tell", "Only send a test message to the addresses that the suite names.")
]
SuiteArgument = Annotated[Path, argument("SUITE.yaml", "A suite file.")]


def run(
    suite: SuiteArgument,
    follow: Annotated[bool, option("--follow/--no-follow", "Wait until it is over, and print what it says.")] = True,
    test_tell: TestTellOption = False,
    common: Common = HERE,
) -> None:
    """Run a suite once, now, on the running farm. Ctrl-C only stops following it (see `farm nightly status`).

    Exit status 0: the night is complete, and nothing is worse or missing; 1: otherwise, or if it cannot run.

    Example: `farm nightly experiments/suites/nightly.yaml`, `farm nightly --test-tell experiments/suites/nightly.yaml`
    """
    from farm.tasks.nightly import keeper_of

    settings = settings_of(common.state)
    asked = _asked(suite, settings)
    if test_tell:
        _test_tell(asked, settings, as_json=common.as_json)
        return
    with open_ledger(settings) as ledger:
        now = time.time()
        keeper = keeper_of(site_of(settings, ledger), user_by(COMMAND_LINE))
        night = keeper.begin(asked, suite.absolute(), now, now, scheduled=False)
        log().print(f"night [bold]{escape(night.night_id)}[/] begins: {_extent(night)}")
        if follow:
            night = _followed(settings, ledger, night.night_id)
    _show(night, as_json=common.as_json)
    if follow and not _is_well(night):
        raise typer.Exit(NOT_WELL)


def schedule(suite: SuiteArgument, common: Common = HERE) -> None:
    """Let the farm run a suite by the `schedule` in its file. The farm reads the file again before each night. Whom the
    suite tells is checked now.

    Example: `farm nightly schedule experiments/suites/nightly.yaml`
    """
    from orchestrator import acts
    from orchestrator.nightly.schedule import FORM, following

    asked = _asked(suite, settings_of(common.state))
    if asked.schedule is None:
        raise SpecError(f"{suite}: it has no `schedule`", remedy=f"give one: {FORM}")
    body, first = asked.model_dump_json().encode(), following(asked.schedule, time.time())
    with open_site(settings_of(common.state), new=True) as site:
        file = str(suite.absolute())
        done = acts.nights.schedule_suite(site, user_by(COMMAND_LINE), asked.name, file, asked.schedule, body, first)
    show_done(done, as_json=common.as_json)


def unschedule(name: Annotated[str, argument("NAME", "Name of a suite.")], common: Common = HERE) -> None:
    """Stop running a suite by its schedule. The results of its nights are kept.

    Example: `farm nightly unschedule nightly`
    """
    from orchestrator import acts

    with open_site(settings_of(common.state)) as site:
        show_done(acts.nights.unschedule_suite(site, user_by(COMMAND_LINE), name), as_json=common.as_json)


def status(
    night: Annotated[
        str | None, argument("[SUITE|NIGHT]", "Name of a suite (its newest night), or a night's id.")
    ] = None,
    common: Common = HERE,
) -> None:
    """Show what a night found, or its progress; default: the newest night. Needs no running farm.

    Example: `farm nightly status nightly --json`
    """
    with open_ledger(settings_of(common.state)) as ledger:
        _show(_found(ledger, night), as_json=common.as_json)


def list_(
    suite: Annotated[str | None, argument("[SUITE]", "Only nights of this suite.")] = None, common: Common = HERE
) -> None:
    """List nights, the newest first, and the suites that run by themselves.

    Example: `farm nightly list`
    """
    from orchestrator.nightly.schedule import following
    from orchestrator.report.listing import Listing

    with open_ledger(settings_of(common.state)) as ledger:
        nights = [_read(text.body) for text in ledger.nights.of(suite, limit=SHOWN)]
        schedules = [each for each in ledger.nights.schedules() if suite in (None, each.suite)]
    told = [
        {"suite": each.suite, "file": each.file, "cron": each.cron, "next": following(each.cron, time.time())}
        for each in schedules
    ]
    if common.as_json:
        print_json({"nights": [data_of(night) for night in nights], "schedules": told})
        return
    rows = [(escape(night.night_id), _word(night), escape(_tail(night))) for night in nights]
    out().print(Listing(("night", "outcome", "found"), rows) if rows else "no night was run yet")
    for each in told:
        out().print(f"{each['suite']} runs by itself ({each['cron']}), next at {day(float(str(each['next'])))}")


def _asked(suite: Path, settings: Settings) -> Suite:
    """The suite of a file. Raises SpecError, also where it tells somebody who cannot be told."""
    from orchestrator.nightly import load

    asked = load(suite)
    if asked.tell:
        from orchestrator.report.nights.tell import check_addresses  # loads matplotlib

        check_addresses(asked.tell, _addresses(settings))
    return asked


def _addresses(settings: Settings) -> dict[str, str]:
    return {name: address.get_secret_value() for name, address in settings.tell.items()}


def _test_tell(asked: Suite, settings: Settings, *, as_json: bool) -> None:
    from orchestrator.report.nights.tell import send_test

    if not asked.tell:
        raise NoData(f"the suite {asked.name} tells nobody", remedy="give it `tell: [ADDRESS]`")
    told = send_test(asked.name, asked.tell, _addresses(settings))
    if as_json:
        print_json({"suite": asked.name, "told": told})
    for each in told:
        say(f"{each.to}: {each.error or 'told'}")
    if any(each.error for each in told):
        raise typer.Exit(NOT_WELL)


def _followed(settings: Settings, ledger: Ledger, night_id: str) -> Night:
    """The night when it is over. Raises ServiceDown where the farm ends before it."""
    from farm.cli.experiments.live import status_line

    inventory = open_inventory(settings)
    with status_line(log()) as show:
        while True:
            night = _read(ledger.nights.one(night_id).body)
            if night.ended_at is not None:
                return night
            inventory.hosts()
            show(progress(ledger, night))
            time.sleep(LOOK_S)


def progress(ledger: Ledger, night: Night) -> str:
    """Return what the night's newest experiments are doing."""
    turn = max((wave.number for wave in night.waves), default=0)
    parts = []
    for wave in (each for each in night.waves if each.number == turn):
        try:
            counts = ledger.counts(wave.experiment_id)
        except FarmError:
            continue
        left = sum(counts.get(word, 0) for word in ("waiting", "placed", "running"))
        if total := sum(counts.values()):  # else its jobs are not stored yet
            parts.append(f"{wave.part}, {wave.kind}: {total - left} of {counted(total, 'block')}")
    return "; ".join(parts)


def _extent(night: Night) -> str:
    names = ", ".join(part.name for part in night.parts)
    return f"{names} on two sides, {counted(night.suite.rounds, 'round')}, {night.suite.budget:g} s at most"


def _found(ledger: Ledger, name: str | None) -> Night:
    if name is not None and "@" in name:
        return _read(ledger.nights.one(name).body)
    nights = ledger.nights.of(name, limit=1)
    if not nights:
        raise NoData("no night was run yet" + (f" of {name!r}" if name else ""), remedy="farm nightly SUITE.yaml")
    return _read(nights[0].body)


def _read(body: bytes) -> Night:
    from orchestrator.nightly import Night

    return Night.model_validate_json(body)


def _show(night: Night, *, as_json: bool) -> None:
    from orchestrator.nightly.summary import summary

    if as_json:
        print_json(data_of(night))
        return
    out().print(summary(night), markup=False, soft_wrap=True)


def data_of(night: Night) -> dict[str, Any]:
    """Return the night as it is stored, for programs, without the experiments in full."""
    from orchestrator.nightly.summary import counts

    return {**night.model_dump(mode="json", exclude={"parts"}), "counts": counts(night)}


def _is_well(night: Night) -> bool:
    from orchestrator.nightly.summary import counts

    found = counts(night)
    bad = sum(count for word, count in found.items() if word.startswith("worse") or word == "missing")
    return night.outcome == "complete" and not bad


def _word(night: Night) -> str:
    if night.outcome is None:
        return "[yellow]under way[/]"
    style = "green" if _is_well(night) else "red"
    return f"[{style}]{night.outcome.replace('_', ' ')}[/]"


def _tail(night: Night) -> str:
    from orchestrator.nightly.summary import headline

    return headline(night).partition(": ")[2] + "".join(f"; {text}" for text in night.problems[:1])


group = group_of(
    "nightly",
    (run, schedule, unschedule, status, list_),
    "Compare two sides of a suite on the same phones, once (`farm nightly SUITE.yaml`) or every night by its "
    "schedule.\n\nExample: `farm nightly suite.yaml`, `farm nightly schedule suite.yaml` (`--state DIR`, `--json`)",
    implied=lambda word: word == "--test-tell" or is_yaml(word),
)
