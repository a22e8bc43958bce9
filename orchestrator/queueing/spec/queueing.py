"""The spec as a whole, and its way from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from orchestrator.model.base import Model, rule
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import Conditions, Name
from orchestrator.model.quantity import Rest, SamplingPeriod, Seconds, parse_share
from orchestrator.spec import taken_names
from orchestrator.spec.validation import read_text, validate

from .answers import Answer
from .arrivals import Arrivals, ClosedArrivals, TraceArrivals, faster
from .distributions import Distribution, Samples
from .inference import Inference
from .servers import ServerGroup
from .stations import Station, check_network, mean_visits

WANTED = "a queueing spec is a mapping: `name: ...`, `servers: [...]`, `classes: [...]`, `policy: {name: fifo}`"

ShareOrNone = Annotated[float, BeforeValidator(parse_share), Field(ge=0, lt=1)]


Service = Annotated[Distribution | Answer, Field(discriminator="kind")]


class RequestClass(Model):
    """Requests of one kind: one network, one way to arrive."""

    name: Name
    arrivals: Arrivals
    service: Service | None = None
    """The time of one request on a server of speed 1, or `answer`, a language model's. It is not needed where every
    server has its own. On phones, without `infer`, they hold these times instead of computing."""
    infer: Inference | None = None
    """The inference that phones compute for it; its time is then measured, and `service` is the simulation's alone."""
    inferences: int | None = Field(default=None, ge=2, le=10_000)
    """The inferences, one after the other, that are a request; `service` is of all of them. One of higher priority
    then interrupts it between two of them; not given: in a simulation at any moment, on phones never."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Higher goes first, before the policy's order."""
    deadline: Seconds | None = None
    """The time after the intended arrival; a request that ends later has missed it."""
    enters: Name | None = None
    """The station at which its requests enter a network; not given: the first."""


class PolicyChoice(Model):
    """The policy, and its options."""

    name: str | None = None
    """The name of one of the farm's own."""
    file: str | None = None
    """A Python file with a class `Policy`, relative to the spec's folder. It is code that runs with your rights."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)

    @rule
    def _one(self) -> None:
        if (self.name is None) == (self.file is None):
            raise ValueError("give either name or file")


class Limits(Model):
    """The limits beyond which requests are turned away."""

    queue: int | None = Field(default=None, ge=0)
    """The most requests that wait in one queue; one more is dropped. Not given: no limit."""
    drop_late: bool = False
    """Drop a request whose deadline is over before its service begins."""


class Batch(Model):
    """Requests that are served together. A batch of n takes the time of one, times 1 + marginal (n - 1)."""

    size: int = Field(default=1, ge=1, le=1000)
    window: Rest = 0.0
    """The time that an idle server waits for a full batch, from the arrival of the first request on."""
    marginal: float = Field(default=1.0, ge=0, le=1)
    continuous: bool = False
    """A request, of any class, joins those that run as soon as there is room, and leaves when it is over; in
    simulations. Else those of a batch are of one class, begin together, and end together."""

    def cost(self, requests: float) -> float:
        """Return how many times as long as one alone each of so many takes."""
        return 1 + self.marginal * (requests - 1)


class Target(Model):
    """The target that `--capacity` keeps to."""

    p99: Seconds
    """The p99 of the sojourn, over all classes."""
    drops: ShareOrNone = 0.0
    """The largest share of the requests dropped."""


class QueueingSpec(Model):
    """One queueing experiment."""

    schema_version: Literal[1] = 1
    name: Name
    description: str = ""
    servers: tuple[ServerGroup, ...] = Field(min_length=1)
    classes: tuple[RequestClass, ...] = Field(min_length=1, max_length=100)
    stations: tuple[Station, ...] = Field(default=(), max_length=100)
    """A network, in simulations: each has lines of its own under the policy, and requests go from one to another. Each
    visit draws its own service time. Not given: all servers are one station, which requests visit once."""
    policy: PolicyChoice = PolicyChoice(name="fifo")
    limits: Limits = Limits()
    batch: Batch = Batch()
    preemption: Literal["none", "resume", "restart"] = "none"
    """The effect of a request of higher priority: it interrupts a lower one, which then goes on, or begins anew."""
    overhead: Rest = 0.0
    """The dispatcher's own time for each request, one after the other; on phones it is measured."""
    conditions: Conditions | None = None
    """The conditions on a phone when the run starts, as in experiments; on phones alone."""
    power_period: SamplingPeriod = 0.1
    """The time between readings of a phone's gauge, temperature and clocks while it serves."""
    warm_up: Literal["tenth", "mser5", "none"] | Seconds = "tenth"
    """The part left out at the beginning of every run: a tenth of it, this long, or what MSER finds in the mean
    course of all runs, which makes figures of few runs too low."""
    duration: Seconds
    """The time in which requests arrive; those in the system are then served to the end."""
    replications: int = Field(default=1, ge=1, le=1000)
    """Independent runs; intervals leave out one at a time. With one run, one of its batches at a time."""
    seed: int = Field(default=1, ge=0)
    target: Target | None = None

    @rule
    def _consistent(self) -> None:
        for kind, entries in (("server", self.servers), ("class", self.classes), ("station", self.stations)):
            if len({each.name for each in entries}) != len(entries):
                raise ValueError(f"two entries of one name: each {kind} needs its own")
        classes = {each.name for each in self.classes}
        for server in self.servers:
            if unknown := sorted(set(server.service) - classes):
                raise ValueError(f"server {server.name} has times of {', '.join(unknown)}, which is no class here")
            for each in self.classes:
                if each.infer is None and each.service is None and each.name not in server.service:
                    raise ValueError(f"nothing says how long class {each.name} takes on {server.name}: give `service`")
        if self.preemption != "none" and self.batch.size > 1:
            raise ValueError("preemption and batches exclude each other: a batch cannot be interrupted")
        if self.batch.size > 1 and any(each.inferences for each in self.classes):
            raise ValueError("requests of several `inferences` are not served in batches: leave out one of the two")
        for each in self.classes:
            self._check_answers(each)
        if self.batch.continuous:
            odd = {
                "`batch.window`": self.batch.window, "`heat`, `setup`, `travel` and `learn` of servers":
                any(each.heat or each.setup or each.travel or each.learn for each in self.servers),
            }  # fmt: skip
            if named := next((name for name, given in odd.items() if given), ""):
                raise ValueError(f"requests of a continuous batch come and go: leave out {named}")
        if isinstance(self.warm_up, float) and self.warm_up >= self.duration:
            raise ValueError(f"warm_up of {self.warm_up:g} s leaves nothing of {self.duration:g} s")
        if self.stations:
            entered = {self.entry(each) for each in self.classes}
            check_network(self.stations, [each.name for each in self.servers], entered)
            self._check_stable()
        elif entering := [each.name for each in self.classes if each.enters is not None]:
            raise ValueError(f"class {entering[0]} enters at a station, and there are none: give `stations`")

    def _check_answers(self, of: RequestClass) -> None:
        """Raise ValueError where answers are asked of what cannot give them."""
        computed = of.infer is not None and of.infer.language_model is not None
        if not isinstance(of.service, Answer):
            if computed:
                raise ValueError(f"class {of.name}: give `service: {{kind: answer, prompt: N, generate: N}}` beside it")
            return
        odd = {
            "`preemption`": self.preemption != "none", "`stations`": self.stations, "`inferences`": of.inferences,
            "`infer`, or have it name a language_model": of.infer is not None and not computed,
        }  # fmt: skip
        if named := next((name for name, given in odd.items() if given), ""):
            raise ValueError(f"class {of.name} has answers, which are generated at one go: leave out {named}")
        if not computed and of.service.token is None and of.service.ledger is None:
            raise ValueError(f"class {of.name}: give prompt_token and token, or ledger")

    def _check_stable(self) -> None:
        """Raise ValueError where more comes to a station than it can serve, for ever, as far as the spec tells."""
        times = [group.service.get(each.name, each.service) for group in self.servers for each in self.classes]
        rated = all(hasattr(each.arrivals, "rate") for each in self.classes)
        known = all(each is not None and (not isinstance(each, Samples) or each.values_s) for each in times)
        if not rated or not known or self.limits.queue is not None or self.limits.drop_late:
            return
        rate = sum(self.offered_rates().values())
        for name, (most, visits) in self.station_capacities().items():
            if rate >= most:
                told = f"{rate * visits:.4g} visits/s come, and it can serve {most * visits:.4g} at most"
                raise ValueError(f"station {name} is unstable: {told}: more servers, or `limits: {{queue: N}}`")

    @property
    def open(self) -> bool:
        """True if arrivals do not wait for ends."""
        return not any(isinstance(each.arrivals, ClosedArrivals) for each in self.classes)

    @property
    def server_count(self) -> int:
        return sum(group.count for group in self.servers)

    def others(self) -> tuple[QueueingSpec, ...]:
        """The spec with the heat of all servers as far off as it may be, to the same side; none where it is sure."""
        heats = [(group.heat.others() or (group.heat,)) if group.heat else (None,) for group in self.servers]
        most = max(map(len, heats))
        if most == 1:
            return ()
        return tuple(
            self.model_copy(update={"servers": tuple(
                group.model_copy(update={"heat": own[number % len(own)]})
                for group, own in zip(self.servers, heats, strict=True)
            )})
            for number in range(most)
        )  # fmt: skip

    def mean_service_s(self, group: ServerGroup, of: RequestClass) -> float:
        """The mean time of one request alone on a cool, warm server."""
        chosen = group.service.get(of.name, of.service)
        if chosen is None or (isinstance(chosen, Answer) and chosen.token is None):
            raise SpecError(
                f"nothing says how long class {of.name} takes on {group.name}",
                remedy="give the class `service` for a simulation: a distribution, or the ledger's samples",
            )
        return chosen.mean / group.speed

    @property
    def asks_the_ledger(self) -> bool:
        """Return whether service times, or what a group learns, are to be read from the ledger."""
        times = [each.service for each in self.classes]
        times += [own for group in self.servers for own in group.service.values()]
        asked = any(isinstance(each, Samples | Answer) and each.ledger is not None for each in times)
        return asked or any(group.learn is not None for group in self.servers)

    def offered_rates(self) -> dict[str, float]:
        """Requests a second by class. Raises SpecError where a class has none before it has run."""
        found = {}
        for each in self.classes:
            if isinstance(each.arrivals, ClosedArrivals | TraceArrivals):
                raise SpecError(
                    f"class {each.name} has no rate of its own ({each.arrivals.kind})",
                    remedy="loads and capacities need arrivals with a rate: poisson, gamma, mmpp ...",
                )
            found[each.name] = each.arrivals.rate
        return found

    def entry(self, of: RequestClass) -> str:
        """The station at which requests of a class enter."""
        return of.enters or self.stations[0].name

    def stands_at(self, group: ServerGroup) -> int:
        """The number of a group's station."""
        return next((at for at, each in enumerate(self.stations) if group.name in each.servers), 0)

    def groups_at(self, station: int) -> list[ServerGroup]:
        """The groups of a station, by its number."""
        return [group for group in self.servers if self.stands_at(group) == station]

    def servers_at(self, station: int) -> int:
        return sum(group.count for group in self.groups_at(station))

    def visits(self) -> list[list[float]]:
        """Return by class and station how often a request comes there on average; once where there is no network."""
        if not self.stations:
            return [[1.0] for _ in self.classes]
        return [mean_visits(self.stations, self.entry(each)) for each in self.classes]

    def capacity(self) -> float:
        """Requests a second of this mix that can be served where servers are always busy with full batches: all of
        them, or in a network those of the station that is the narrowest."""
        return min(most for most, _ in self.station_capacities().values())

    def station_capacities(self) -> dict[str, tuple[float, float]]:
        """Return by station its capacity, and how often a request of this mix comes there."""
        rates = self.offered_rates()
        shares = [rates[each.name] / sum(rates.values()) for each in self.classes]
        full = self.batch.size / self.batch.cost(self.batch.size)
        visits = self.visits()
        found = {}
        for at, name in enumerate([each.name for each in self.stations] or [""]):
            coming = [share * own[at] for share, own in zip(shares, visits, strict=True)]
            most = sum(
                group.count
                / sum(c * self.mean_service_s(group, of) for c, of in zip(coming, self.classes, strict=True))
                for group in self.groups_at(at)
            )
            found[name] = (full * most, sum(coming))
        return found

    def at_rate(self, rate: float) -> QueueingSpec:
        """The same mix with so many requests a second in all."""
        factor = rate / sum(self.offered_rates().values())
        classes = tuple(each.model_copy(update={"arrivals": faster(each.arrivals, factor)}) for each in self.classes)
        return self.model_copy(update={"classes": classes})


def parse(text: str, file: str) -> QueueingSpec:
    """Validate a text; `file` names it in errors. Raises SpecError with every problem."""
    return validate(text, QueueingSpec, file, WANTED, taken_names)


def load(path: Path) -> QueueingSpec:
    """Read and validate a file; files that it names are made absolute. Raises SpecError with every problem."""
    spec = parse(read_text(path), str(path))
    folder = path.resolve().parent
    classes = tuple(each.model_copy(update=_absolute(each, folder)) for each in spec.classes)
    policy = spec.policy
    if policy.file is not None:
        policy = policy.model_copy(update={"file": str(folder / policy.file)})
    return spec.model_copy(update={"classes": classes, "policy": policy})


def _absolute(of: RequestClass, folder: Path) -> dict[str, object]:
    """The files that a class names, from the spec's folder on."""
    found: dict[str, object] = {}
    if isinstance(of.arrivals, TraceArrivals):
        found["arrivals"] = of.arrivals.model_copy(update={"file": str(folder / of.arrivals.file)})
    if of.infer is not None:
        files = {name: getattr(of.infer, name) for name in ("onnx", "language_model")}
        own = {name: str(folder / file) for name, file in files.items() if file is not None}
        found["infer"] = of.infer.model_copy(update=own)
    return found
