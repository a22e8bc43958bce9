"""One replayed run: the real agent computes once, then the recorded inferences are played."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

from .journal import End, Journal, now_ns
from .sampler import Sampler
from .times import times_of

AT_ONCE = ("hello", "device", "setup", "warning")
LATER = ("layer", "output", "memory")
"""Events of the real agent that are passed on: at once, and after the inferences. The others are made here."""


class Run:
    """One replayed run."""

    def __init__(self, agent: str, words: list[str]) -> None:
        self.options, self.rest, self.is_detached = split(words)
        self._agent = agent
        self._folder = Path(os.environ["POCKETFARM_REPLAY"])
        self.journal: Journal
        self.say_started: Callable[[], object] = lambda: None
        """Called when the `hello` is on disk."""
        self._ends_ns = 0

    def play(self) -> int:
        """All of it; the exit status."""
        began_ns = now_ns()
        try:
            self._ends_ns = began_ns + int(float(self.options["--deadline-s"]) * 1e9)
            later = self._compute()
            if self.options["--inferences"] != "1":
                raise End("unsupported", "a recording has latencies of single inferences: it replays no streams")
            with Sampler(self.journal, int(self.options["--power-period-ms"])):
                count = self._phases()
        except End as end:
            self.journal.write("error", code=end.code, message=str(end), step="")
            return 1
        finally:
            (self._folder / "running.json").unlink(missing_ok=True)
        for event in self._times.replaying(later):
            self._pass_on(event)
        self.journal.write("result", samples=count, run_ns=now_ns() - began_ns)
        return 0

    def _compute(self) -> list[dict[str, Any]]:
        """One inference of the real agent; its events after the set-up. Raises End with its own error."""
        command = [self._agent, "run", *self.rest, "--warmup", "0", "--samples", "1"]
        command += ["--deadline-s", self.options["--deadline-s"]]
        later: list[dict[str, Any]] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as real:
            try:
                for line in real.stdout or ():
                    self._hear(json.loads(line), later)
            except BaseException:
                real.kill()
                raise
        if real.returncode != 0:
            raise End("internal", f"the agent ended with {real.returncode} and without an error event")
        return later

    def _hear(self, event: dict[str, Any], later: list[dict[str, Any]]) -> None:
        """One event of the real agent."""
        kind = event["event"]
        if kind == "error":
            raise End(event["code"], event["message"])
        if kind in LATER:
            later.append(event)
        elif kind in AT_ONCE:
            self._pass_on({**event, "pid": os.getpid()} if kind == "hello" else event)
            if kind == "hello":
                self.say_started()

    def _pass_on(self, event: dict[str, Any]) -> None:
        fields = {name: value for name, value in event.items() if name not in ("event", "seq", "t_ns")}
        self.journal.write(event["event"], **fields)

    def _phases(self) -> int:
        """Idle, warm-up, load, idle; how many inferences were timed."""
        idle_s, load_ns = int(self.options["--idle-ms"]) / 1e3, int(self.options["--load-ms"]) * 1_000_000
        latencies = self._latencies()
        self._await_discharging()
        self._rest("idle_before", idle_s)
        began = self._now_ns = now_ns()
        self._announce(began)
        warm = self._warm_up(latencies)
        if warm:
            self.journal.write("phase", phase="warmup", start_ns=began, end_ns=self._now_ns)
        began, count = self._now_ns, 0
        least_ns, runs = int(self.options["--least-sample-us"]) * 1000, 1
        while count < int(self.options["--samples"]) or self._now_ns < began + load_ns:
            mean_ns = round(fmean(itertools.islice(latencies, runs)))
            self._infer("timed", count, mean_ns, runs)
            count, runs = count + 1, max(runs, 1 + least_ns // max(1, mean_ns))
        self.journal.write("phase", phase="load", start_ns=began, end_ns=self._now_ns)
        (self._folder / "running.json").unlink(missing_ok=True)
        self._note_played()
        self._rest("idle_after", idle_s)
        return count

    def _latencies(self) -> Iterator[int]:
        """Recorded durations of the plan's network in ns, without an end. Raises End where there is none."""
        plan = Path(self.rest[self.rest.index("--plan") + 1])
        recorded = json.loads((self._folder / "times.json").read_text())
        self._times = times_of(json.loads((plan / "plan.json").read_text()), recorded)
        self._network, own, slower = self._times.network, self._times.latency_ms, self._slower()
        if missing := self._times.missing:
            had = f"the time is the sum of {len(self._times.layers)} layers that were recorded"
            names = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            self.journal.write("warning", code="layers_missing", message=f"{had}, without {names}")
        first = self._first() % len(own)
        return (round(ms * 1e6 * slower) for ms in self._counted(itertools.cycle(own[first:] + own[:first])))

    def _slower(self) -> float:
        """Times that this build of the agent is slower than others."""
        try:
            slow = json.loads((self._folder / "slow.json").read_text())
        except OSError:
            return 1.0
        with Path(self._agent).open("rb") as program:
            is_slow = hashlib.file_digest(program, "sha256").hexdigest().startswith(slow["build"])
        return 1.0 / float(slow["share"]) if is_slow else 1.0

    def _first(self) -> int:
        """Return how many inferences of the network earlier runs played, where runs go on."""
        with contextlib.suppress(OSError):
            (self._folder / "goes_on").stat()
            return int(json.loads((self._folder / "played.json").read_text()).get(self._network, 0))
        return 0

    def _counted(self, latencies: Iterator[float]) -> Iterator[float]:
        self._played = self._first()
        for latency in latencies:
            self._played += 1
            yield latency

    def _note_played(self) -> None:
        path, played = self._folder / "played.json", {}
        with contextlib.suppress(OSError):
            played = json.loads(path.read_text())
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({**played, self._network: self._played}))
        fresh.replace(path)

    def _announce(self, since_ns: int) -> None:
        fresh = self._folder / "running.json.new"
        running = {"network": self._network, "cell": self._times.cell, "since_ns": since_ns, "pid": os.getpid()}
        fresh.write_text(json.dumps(running))
        fresh.replace(self._folder / "running.json")

    def _warm_up(self, latencies: Iterator[int]) -> int:
        least, share = int(self.options["--warmup"]), float(self.options["--warmup-stable"])
        most = least + max(30, 30 * least) if share else least
        done: list[int] = []
        while len(done) < most and not (len(done) >= least and share and is_stable(done, share)):
            done.append(next(latencies))
            self._infer("warmup", len(done) - 1, done[-1])
        if share and not is_stable(done, share):
            self.journal.write("warning", code="not_warm", message=f"the last five of {len(done)} do not agree")
        return len(done)

    def _infer(self, phase: str, index: int, duration_ns: int, runs: int = 1) -> None:
        start_ns, self._now_ns = self._now_ns, self._now_ns + duration_ns * runs
        self._sleep_until(self._now_ns)
        told = {"start_ns": start_ns, "duration_ns": duration_ns, **({"mean_of": runs} if runs > 1 else {})}
        self.journal.write("sample", index=index, phase=phase, **told)

    def _rest(self, phase: str, seconds: float) -> None:
        if seconds:
            start_ns = now_ns()
            self._sleep_until(start_ns + int(seconds * 1e9))
            self.journal.write("phase", phase=phase, start_ns=start_ns, end_ns=now_ns())

    def _await_discharging(self) -> None:
        limit_ns = int(self.options["--await-discharging-ms"]) * 1_000_000
        status = Path(os.environ["POCKETFARM_SYSROOT"], "sys/class/power_supply/battery/status")
        began = now_ns()
        while limit_ns and status.read_text().strip() != "Discharging":
            if now_ns() > began + limit_ns:
                raise End("power_contaminated", f"the battery is not discharging after {limit_ns / 1e9:g} s")
            self._sleep_until(now_ns() + 50_000_000)

    def _sleep_until(self, until_ns: int) -> None:
        if until_ns > self._ends_ns:
            raise End("deadline", f"the deadline of {self.options['--deadline-s']} s has passed")
        time.sleep(max(0, until_ns - now_ns()) / 1e9)


def is_stable(durations: list[int], share: float) -> bool:
    last = durations[-5:]
    return len(last) == 5 and max(last) - min(last) <= share * median(last)


OWN = {
    "--journal": "", "--warmup": "0", "--samples": "1", "--idle-ms": "0", "--load-ms": "0", "--warmup-stable": "0",
    "--power-period-ms": "0", "--await-discharging-ms": "0", "--deadline-s": "600",
    "--inferences": "1", "--least-sample-us": "0",
}  # fmt: skip
"""Options that this program takes upon itself, with the agent's defaults."""


def split(words: list[str]) -> tuple[dict[str, str], list[str], bool]:
    """Divide the command line of the agent: our own options, those of the real agent, and whether to detach."""
    own, rest, is_detached = dict(OWN), [], False
    left = iter(words)
    for word in left:
        if word == "--detach":
            is_detached = True
        elif word in OWN:
            own[word] = next(left, "")
        else:
            rest.append(word)
    return own, rest, is_detached
