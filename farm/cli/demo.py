"""`farm demo`: a first experiment, end to end, on four virtual phones and this workstation."""

from __future__ import annotations

import _thread
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farm.access import open_inventory, open_leases, open_ledger, settings_of

from .experiments.submission import print_submission
from .output import JsonOption, log, option, out, print_json
from .results.results import gather, write_html

if TYPE_CHECKING:
    from farm.demo import Demo
    from farm.demo.night import NightDemo
    from orchestrator.nightly import Night

STATE = Path(".farm/demo")
NIGHTLY_STATE = Path(".farm/nightly-demo")


def demo(
    state: Annotated[Path, option("--state DIR", "Folder of the demo's state; its report goes there too.")] = STATE,
    nightly: Annotated[
        bool,
        option("--nightly", "Compare two builds on three phones instead; one phone is slower with the second build."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a first experiment on this machine, without a phone: on four virtual phones and the workstation's devices.

    Starts a farm, submits experiments/first.yaml and first_energy.yaml, shows them live, prints the results, writes an
    HTML report, and ends everything that it started. If you interrupt it, no process stays behind, and the next
    `farm demo` resumes.

    Example: `farm demo`, `farm demo --nightly`
    """
    from farm.demo import Demo
    from orchestrator.report import console
    from orchestrator.report.listing import part
    from orchestrator.report.sections import sections

    if nightly:
        _nightly(state if state != STATE else NIGHTLY_STATE, as_json=as_json)
        return

    from .experiments.outcomes import outcomes

    started = time.monotonic()
    with _ended(session := Demo(state), "What is measured is kept: the next `farm demo` goes on from there."):
        energy, content, page = _run(session, state)
    seconds = time.monotonic() - started
    if as_json:
        facts = {"experiment": content.experiment_id, "outcomes": outcomes(content.outcomes)}
        facts["energy"] = {"experiment": energy.experiment_id, "outcomes": outcomes(energy.outcomes)}
        print_json({**facts, "report": page, "seconds": round(seconds, 1)})
    else:
        parts = [part(section) for section in sections(energy) if section.name.startswith("energy")]
        out().print(console.render(content), *parts, sep="\n\n")
        _next_steps(page, state, seconds)
    if not (_all_measured(content) and _all_measured(energy)):
        raise typer.Exit(1)


@contextmanager
def _ended(session: Demo, interrupted: str) -> Iterator[None]:
    """Stop the farm on exit, also after an error."""
    before = _interrupt_on_signals()
    try:
        yield
    except KeyboardInterrupt:
        log().print(f"\n[yellow]Interrupted.[/] {interrupted}")
        raise
    finally:
        _ignore_signals()
        with log().status("ending the farm"):
            session.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def _nightly(state: Path, *, as_json: bool) -> None:
    from farm.demo.night import SLOW, SLOWER, NightDemo, is_found
    from orchestrator.nightly.summary import summary

    from .nights.nightly import data_of

    started = time.monotonic()
    with _ended(session := NightDemo(state), "The next `farm demo --nightly` begins another night."):
        night = _run_night(session, state)
    if as_json:
        print_json({**data_of(night), "slow": SLOW, "found": is_found(night)})
    else:
        out().print(summary(night), markup=False, soft_wrap=True)
        found = "found, and found again in the repetition" if is_found(night) else "not found for sure"
        out().print(
            f"\nThe demo made the candidate {SLOWER:.0%} slower on {SLOW} (REPLAY), and did not tell the farm: "
            f"[bold]{found}[/].\n"
            f"Done in {time.monotonic() - started:.0f} s; everything that was started has ended.\n"
            f"  farm nightly status --state {state}   this night again; --json with every row\n"
            f"  docs/howto/nightly.md   suites of your own, every night by themselves",
            soft_wrap=True,
        )
    if not is_found(night):
        raise typer.Exit(1)


def _run_night(session: NightDemo, state: Path) -> Night:
    """Start, slow one phone down, begin the night, follow it."""
    from .experiments.live import status_line
    from .nights.nightly import progress

    console_ = log()
    console_.print(f"[bold]pocketfarm {version('pocketfarm')}[/]: a night on three virtual phones, in {state}")
    with console_.status("building the agent, where there is none yet"):
        session.build_agent()
        suite = session.prepare()
    with console_.status("starting Redis, adb server, phones, scheduler, worker, nights, exporter"):
        session.start()
    settings = settings_of(state)
    inventory = open_inventory(settings)
    with console_.status("waiting for the devices") as status:
        session.wait_for_devices(inventory, lambda words: status.update(f"waiting for the devices: {words}"))
    session.slow_down()
    with open_ledger(settings) as ledger:
        night = session.begin(settings, ledger, suite)
        console_.print(f"night {night.night_id}: this build and the next one, next to each other on every phone")
        with status_line(console_) as show:
            return session.follow_night(ledger, night.night_id, lambda now: show(progress(ledger, now)))


def _all_measured(content: Any) -> bool:
    """Return whether every job was run and computed what it should. A block that other programs of this machine
    disturbed is shown as invalid: that is what the farm is for, and no failure of the demo."""
    from orchestrator.model.record import InvalidCode, Outcome

    from .experiments.outcomes import all_ok

    disturbed = [b for b in content.blocks if b.outcome == Outcome.INVALID and b.cause != InvalidCode.WRONG_OUTPUT]
    others = {
        **content.outcomes,
        Outcome.INVALID.value: content.outcomes.get(Outcome.INVALID.value, 0) - len(disturbed),
    }
    return all_ok(others)


def _run(session: Demo, state: Path) -> tuple[Any, Any, Path]:
    """Start, submit, follow, report."""
    from .experiments import live

    console_ = log()
    console_.print(f"[bold]pocketfarm {version('pocketfarm')}[/]: four virtual phones and this workstation, in {state}")
    with console_.status("building the agent, where there is none yet"):
        session.build_agent()
    with console_.status("starting Redis, adb server, phones, scheduler, worker, exporter"):
        session.start()
    settings = settings_of(state)
    inventory = open_inventory(settings)
    with console_.status("waiting for the devices") as status:
        devices = session.wait_for_devices(inventory, lambda words: status.update(f"waiting for the devices: {words}"))
    console_.print(f"ready: {', '.join(f'{d.serial} ({d.facts.profile or d.facts.kind})' for d in devices)}")
    with open_ledger(settings) as ledger:
        submissions = session.submit(settings, ledger, devices)
        for submission in submissions:
            print_submission(submission)
        for name, submission in zip(("first", "first-energy"), reversed(submissions), strict=True):
            with live.view(console_, name) as show:
                session.follow(ledger, inventory, open_leases(settings), submission.experiment_id, show)
        energy, content = (gather(settings, ledger, ledger.experiment(each.experiment_id)) for each in submissions)
        return energy, content, write_html(content, ledger, state / "report.html")


def _interrupt_on_signals() -> dict[int, Any]:
    """A kill or a closed terminal ends the demo as Ctrl-C does. Returns the handlers before."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not _ignores_errors(frame):
            raise KeyboardInterrupt
        _thread.start_new_thread(_signal_soon, (number,))  # one of threading's takes locks that we may hold

    return {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


def _signal_soon(number: int) -> None:
    time.sleep(0.02)
    os.kill(os.getpid(), number)


def _ignores_errors(frame: FrameType | None) -> bool:
    """Return whether Python is in an import or a finalizer: there it may print an error and go on."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _ignore_signals() -> None:
    """Ending is under way and bounded: a second Ctrl-C must not tear it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _next_steps(page: Path, state: Path, seconds: float) -> None:
    option = f" --state {state}"
    here = Path(sys.executable).parent
    on_path = "" if shutil.which("farm") else f"  . {here}/activate   once in a terminal, and `farm` is {here}/farm\n"
    out().print(
        f"\nDone in {seconds:.0f} s; everything that was started has ended.\n"
        f"  [bold]{page}[/]  the report, for a browser\n{on_path}"
        f"  farm results latest{option}   this table again; --json --raw for every sample\n"
        f"  farm results first-energy{option}   the long load, with its energy\n"
        f"  farm infer --network squeezenet_v1_0 --backend vulkan   one inference, outside the queue\n"
        f"  farm up{option} --virtual 4   keep a farm running; then: farm run experiments/first.yaml --wait{option}\n"
        f"  farm doctor   what this machine lacks; with phones on USB: farm up",
        soft_wrap=True,
    )
