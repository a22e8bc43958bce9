"""Rights: the roles of people by project, who acts and by which door, and the one rule of who may do what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .errors import FarmError, NotAllowed, UnknownName
from .people import Door, Kind, Role, Use


@dataclass(frozen=True)
class Grants:
    """The roles of somebody."""

    farm: Role | None = None
    """The role in every project, and in what belongs to none: phones, hosts, people."""
    projects: Mapping[str, Role] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Iterable[tuple[str, Role]]) -> Grants:
        """Return what several roles are together, each with its project (empty: the farm): of each place the most."""
        most = dict[str, Role]()
        for place, role in given:
            if place not in most or role.reaches(most[place]):
                most[place] = role
        return cls(most.pop("", None), most)

    def reach(self, least: Role, project: str | None) -> bool:
        """Return whether a role reaches this one, in a project or (None) in the farm."""
        own = self.projects.get(project) if project is not None else None
        return any(role is not None and role.reaches(least) for role in (self.farm, own))

    def reach_somewhere(self, least: Role) -> bool:
        return any(self.reach(least, project) for project in (None, *self.projects))

    @property
    def are_whole(self) -> bool:
        """Return whether they reach every right, whatever it is about."""
        return self.farm is Role.ADMINISTER

    @property
    def visible(self) -> frozenset[str] | None:
        """The projects that may be viewed; None: all."""
        return None if self.farm is not None else frozenset(self.projects)

    def within(self, most: Role, project: str = "") -> Grants:
        """Return the same without what a token lacks: no role above `most`, and of one project alone (empty: all)."""
        lower = {name: min(role, most, key=list(Role).index) for name, role in self.projects.items()}
        farm = None if self.farm is None else min(self.farm, most, key=list(Role).index)
        if not project:
            return Grants(farm, lower)
        return Grants.of((project, role) for role in (farm, lower.get(project)) if role is not None)


WHOLE = Grants(Role.ADMINISTER)
"""The grants of whoever has the state folder: they have the ledger's file, and nothing could keep them from it."""


@dataclass(frozen=True)
class Once:
    """The key under which somebody asks for an act once, however often the request comes."""

    key: str
    request_sha256: str


@dataclass(frozen=True)
class Actor:
    """Somebody who acts, by a door."""

    who: str
    """The name of a person of the farm, or of a user of its machine; of a page, the name that its person gives."""
    door: Door
    grants: Grants
    origin: str = ""
    """The address or the machine from which the act came."""
    once: Once | None = None


@dataclass(frozen=True)
class Place:
    """The project of what an act is done to, and who owns that."""

    project: str
    owner: str = ""


@dataclass(frozen=True)
class Right:
    """The least role that an act or a route takes."""

    least: Role
    own: Role | None = None
    """The least role for what one owns; None: the same."""
    of: str = "project"
    """`project`: the role in the project of what it is done to. `farm`: the role in the farm. `any`: in any project."""

    def why_not(self, who: str, grants: Grants, places: Iterable[Place] = ()) -> str:
        """Return why somebody may not do it, in words; empty: they may."""
        if grants.farm is not None and grants.farm.reaches(self.least):
            return ""
        if self.of == "any":
            return "" if grants.reach_somewhere(self.least) else f"it takes the role {self.least} in some project"
        if self.of == "farm":
            mine = self.own is not None and any(place.owner == who for place in places)
            if mine and self.own is not None and grants.reach_somewhere(self.own):
                return ""
            return f"it takes the role {self.least} in the farm"
        found = list(places)
        if not found and not grants.reach_somewhere(self.own or self.least):
            return f"it takes the role {self.least} in some project"
        for place in found:
            own = self.own if self.own is not None and place.owner == who else None
            if not grants.reach(own or self.least, place.project):
                where = f"the project {place.project}" if place.project else "the farm"
                return f"it takes the role {own or self.least} in {where}"
        return ""

    def let(self, who: str, grants: Grants, places: Iterable[Place] = (), what: str = "") -> None:
        """Raise NotAllowed where somebody may not see something; UnknownName where they may not know of `what`."""
        found = list(places)
        if why := self.why_not(who, grants, found):
            raise refusal(who, grants, why, what=what, hidden=found)


def refusal(
    who: str, grants: Grants, why: str, *, what: str = "", doing: str = "see this", hidden: Iterable[Place] = ()
) -> FarmError:
    """Return the error of who may not do something: as if `what` were not there, if it is in a project that is `hidden`
    from them."""
    if not all(grants.reach(Role.VIEW, place.project) for place in hidden):
        return UnknownName(f"there is no experiment or job {what!r}")
    remedy = "ask who administers the farm or the project"
    return NotAllowed(f"{who or 'whoever is not logged in'} may not {doing}: {why}", remedy=remedy)


@dataclass(frozen=True)
class Person:
    """Somebody who may use the farm, or a group of them."""

    name: str
    kind: Kind
    own: Grants
    """The roles that were given to this name."""
    since: float
    """Unix time."""
    ended_at: float | None
    """Unix time from which they may nothing; None: they may."""
    groups: tuple[str, ...]
    """The groups to which they belong."""
    grants: Grants
    """Their own roles, and those of their groups."""


@dataclass(frozen=True)
class Terms:
    """The terms on which a project has the farm."""

    share: float = 1.0
    """Its part of the phones, beside the shares of other projects whose jobs wait."""
    phone_hours: float = 0.0
    """The most that it may use in a week; 0: no limit."""
    most_waiting: int = 0
    """The most jobs that may wait; 0: no limit."""
    storage_gib: float = 0.0
    """The most that its files and records may take; 0: no limit but the usual one of what is sent."""

    @property
    def text(self) -> str:
        """`a share of 2, 40 phone-hours a week, 1000 jobs that wait`."""
        limits = [f"{self.phone_hours:g} phone-hours a week"] * bool(self.phone_hours)
        limits += [f"{self.most_waiting} jobs that wait"] * bool(self.most_waiting)
        limits += [f"{self.storage_gib:g} GiB of files and records"] * bool(self.storage_gib)
        return ", ".join([f"a share of {self.share:g}", *limits])


USUAL = Terms()


@dataclass(frozen=True)
class Project:
    """A project, which owns experiments."""

    name: str
    since: float
    note: str
    members: Mapping[str, Role]
    terms: Terms = USUAL


@dataclass(frozen=True)
class Token:
    """A token without its text, which was shown once."""

    id: str
    person: str
    most: Role
    project: str
    """The project in which alone it counts; empty: wherever its person has a role."""
    note: str
    made_at: float
    ends_at: float | None
    revoked_at: float | None
    used_at: float | None
    """Unix time, to the minute."""
    use: Use = Use.API


@dataclass(frozen=True)
class Webhook:
    """An address that is told what ends, without the key that signs."""

    id: str
    url: str
    project: str
    """The project of which it is told; empty: of all, and of nights."""
    who: str
    made_at: float
    ended_at: float | None
    event: str
    """The end that it was told last, as `experiment ID`; empty: none yet."""
    tried_at: float | None
    error: str
    """The fault of that try; empty: it was taken."""


@dataclass(frozen=True)
class Link:
    """A public link without its secret, which was shown once."""

    id: str
    target: str
    """An experiment, whose report it shows; two with a comma, a job, a night, or `suite:NAME`."""
    project: str
    """Empty: it is of the farm, as nights are."""
    who: str
    """The person who made it."""
    note: str
    made_at: float
    ends_at: float
    revoked_at: float | None
    used_at: float | None
    """Unix time, to the minute."""
