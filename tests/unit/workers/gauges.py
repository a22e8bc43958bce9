"""Simulated battery gauges under load steps: what the agent would have written."""

from __future__ import annotations

import random
from dataclasses import dataclass

from orchestrator.model.event import Phase, Power

SECOND = 1_000_000_000


@dataclass(frozen=True)
class SimulatedGauge:
    refresh_s: float = 0.25
    unit: str = "uA"
    sign: int = -1
    noise_a: float = 0.003
    quantum_a: float = 0.001
    rest_a: float = 0.045
    load_a: float = 0.72
    jitter: float = 0.0
    """The most that the gauge's own period varies, as a share."""
    lag_s: float = 0.0
    """Time constant of the gauge's own averaging."""
    looked_at_s: float = 0.0
    """Period at which something shows the gauge's news: 0: at once."""
    status: str = "Discharging"
    sampled_s: float = 0.02
    denied: bool = False
    frozen: bool = False
    supply_a: float = 0.0
    """Charging current that the nodes do not admit to."""
    counter_uah: float = 0.0
    """Step of the charge counter; 0: there is none."""
    counter_gain: float = 1.0
    """The gauge's gain, as the counter sees it."""

    def run(self, seed: int, step_s: float, steps: tuple[int, ...] = (0, 2, 0, 2)) -> tuple[list[Power], list[Phase]]:
        """Events of `burn --steps ... --step-ms ...`."""
        random_ = random.Random(seed)
        start = random_.randrange(10**12, 10**13)
        phases = [
            Phase(
                seq=0, t_ns=0, phase="load" if threads else "idle_before",
                start_ns=start + round(i * step_s * SECOND), end_ns=start + round((i + 1) * step_s * SECOND),
            )
            for i, threads in enumerate(steps)
        ]  # fmt: skip
        return list(self._readings(random_, start, phases)), phases

    def _readings(self, random_: random.Random, start: int, phases: list[Phase]) -> list[Power]:
        next_news = start - random_.uniform(0, self.refresh_s) * SECOND
        shown, shown_uv, shown_charge, smooth, charge = 0, 0, None, self.rest_a, 2_000_000.0
        made: list[Power] = []
        t = float(start)
        look = float(start)
        while t < phases[-1].end_ns:
            while self.looked_at_s and look + self.looked_at_s * SECOND <= t:
                look += self.looked_at_s * SECOND * random_.uniform(1.0, 1.1)
            while next_news <= (look if self.looked_at_s else t):
                busy = any(p.phase == "load" and p.start_ns <= next_news < p.end_ns for p in phases)
                true_a = self.load_a if busy else self.rest_a
                share = 1.0 if not self.lag_s else min(1.0, self.refresh_s / (self.refresh_s + self.lag_s))
                smooth += share * (true_a - smooth)
                charge -= true_a * self.refresh_s / 3600 * 1e6 / self.counter_gain
                shown = self._printed(random_, smooth - self.supply_a) if not self.frozen or not made else shown
                shown_uv = 3_900_000 - round(0.1 * true_a * 1e3 + random_.gauss(0, 1.0)) * 1000
                shown_charge = round(charge / self.counter_uah) * self.counter_uah if self.counter_uah else None
                next_news += self.refresh_s * SECOND * (1 + random_.uniform(-self.jitter, self.jitter))
            late = random_.expovariate(1 / (0.0005 * SECOND))
            made.append(
                Power(
                    seq=len(made), t_ns=round(t + late), current_ua=None if self.denied else shown,
                    voltage_uv=shown_uv, status=self.status,
                    charge_uah=None if shown_charge is None else round(shown_charge),
                )
            )  # fmt: skip
            t += self.sampled_s * SECOND
        return made

    def _printed(self, random_: random.Random, current_a: float) -> int:
        noisy = current_a + random_.gauss(0, self.noise_a)
        quantised = round(noisy / self.quantum_a) * self.quantum_a * self.sign
        return round(quantised * (1e3 if self.unit == "mA" else 1e6))
