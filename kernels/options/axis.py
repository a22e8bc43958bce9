"""An axis of experiments, declared once: schema, expansion, exclusions, commands, records and docs derive from it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

Value = int | str | bool
Default = TypeVar("Default")
Reason = Callable[..., str]
"""Returns why something does not hold, else an empty text. Its parameters name what it reads: other axes, `backend`."""

GPU = ("opencl", "vulkan")
CPU = ("cpu",)
EVERY = (*GPU, *CPU)
_KEY = "axis"


@dataclass(frozen=True, eq=False)
class Axis:
    """One parameter that an experiment may vary."""

    help: str
    """One sentence without its full stop; the documentation's own words."""
    default: Any = None
    """None: nothing is asked for, and the model or the device decides."""
    unset: str = ""
    """The meaning of the default, where its value does not tell."""
    name: str = ""
    backends: tuple[str, ...] = EVERY
    """The backends on which it means anything."""
    words: tuple[str, ...] = ()
    """The values that are allowed; empty: any of the type."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Backend -> `module:attribute` of a collection with the names it knows, beside `auto`. Read when it is needed."""
    type: type = str
    """`int`, `str` or `bool`."""
    bounds: tuple[int, int] | None = None
    unit: Literal["", "B"] = ""
    parse: Callable[[Any], Any] | None = None
    """Converts what a person may write to the value, e.g. `[bias, concat]` of fusions; else as it is."""
    refuse: Callable[[Any], str] | None = None
    """Returns why a value is none of the axis at all; empty: it is one."""
    conflict: Reason | None = None
    """Returns why a value cannot run beside the others; such a cell is excluded."""
    unused: Reason | None = None
    """Returns why the value makes no difference beside the others; cells that come to the same are run once."""
    at_run: bool = False
    """True if the agent is told it beside the plan: two results of one plan may differ by it."""
    page: str = ""
    """Page of the documentation that tells more."""

    @property
    def option(self) -> str:
        """The name of the command's option."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def otherwise(self) -> str:
        """The value that holds where it is not asked for, in words."""
        return self.unset or (str(self.default).lower() if isinstance(self.default, bool) else str(self.default))

    @cached_property
    def reads(self) -> frozenset[str]:
        """Axes that decide beside it whether it has a conflict or is unused."""
        rules = [rule for rule in (self.conflict, self.unused) if rule]
        return frozenset(name for rule in rules for name in inspect.signature(rule).parameters) - {"backend"}

    @property
    def decides(self) -> bool:
        """True if a value can be excluded at all."""
        return bool(self.conflict or self.unused or self.names)

    def known(self, backend: str) -> tuple[str, ...]:
        """Names that a backend knows, `auto` first; none where the axis takes no names."""
        if backend not in self.names:
            return ()
        module, _, attribute = self.names[backend].partition(":")
        return tuple(dict.fromkeys(("auto", *getattr(importlib.import_module(module), attribute))))

    def why_not(self, backend: str, settings: Mapping[str, Any]) -> str:
        """Return why its value among `settings` cannot run; empty: it can."""
        known, value = self.known(backend), settings[self.name]
        if known and str(value).split(" ")[0] not in known:
            return f"{backend} has no {self.name} `{value}` (it has {', '.join(known)})"
        return self.why_conflict(backend, settings)

    def why_conflict(self, backend: str, settings: Mapping[str, Any]) -> str:
        """The same, names aside: whether one fits a network is the compiler's to say."""
        return _ask(self.conflict, backend, settings)

    def why_unused(self, backend: str, settings: Mapping[str, Any]) -> str:
        """Return why its value among `settings` makes no difference; empty: it may make one."""
        if backend not in self.backends:
            return f"means nothing on {backend}"
        return _ask(self.unused, backend, settings)


def _ask(rule: Reason | None, backend: str, settings: Mapping[str, Any]) -> str:
    if rule is None:
        return ""
    given = {"backend": backend, **settings}
    return rule(**{name: given[name] for name, needed in _asked(rule) if needed or name in given})


@cache
def _asked(rule: Reason) -> tuple[tuple[str, bool], ...]:
    """The fields that a rule reads, and whether they must be given: each point of a matrix asks every rule."""
    return tuple((each.name, each.default is each.empty) for each in inspect.signature(rule).parameters.values())


def axis(default: Default, help: str, **facts: Any) -> Default:
    """A field of a dataclass that is an axis; words and type follow from its annotation."""
    declared = Axis(help, default, **facts)
    return field(default=default, metadata=MappingProxyType({_KEY: declared}))


def gpu_axis(default: Default, help: str, **facts: Any) -> Default:
    """The same of an axis that the CPU backend does not have."""
    return axis(default, help, backends=GPU, **facts)


def axes_of(options: type) -> dict[str, Axis]:
    """The axes among the fields of a dataclass, by name, in the order of their declaration."""
    hints = get_type_hints(options)
    found = {}
    for each in fields(options):
        if _KEY in each.metadata:
            found[each.name] = _typed(each.metadata[_KEY], each.name, hints[each.name])
    return found


def _typed(declared: Axis, name: str, hint: Any) -> Axis:
    words = get_args(hint) if get_origin(hint) is Literal else ()
    return replace(declared, name=name, words=words, type=str if words else hint)
