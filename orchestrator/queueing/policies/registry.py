"""Policies by name, and from a user's own file."""

from __future__ import annotations

import importlib.util
import inspect
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.model.errors import SpecError
from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.spec import PolicyChoice

from .one_line import Edf, FastestFirst, Fifo, Sjf
from .own_lines import EnergyAware, Jsq, LeastExpectedWork, PowerOfD, RoundRobin
from .resting import EnergyBudget, ThermalAware

POLICIES: dict[str, type[Policy]] = {
    "fifo": Fifo,
    "sjf": Sjf,
    "edf": Edf,
    "jsq": Jsq,
    "power_of_d": PowerOfD,
    "round_robin": RoundRobin,
    "fastest_first": FastestFirst,
    "least_expected_work": LeastExpectedWork,
    "energy_aware": EnergyAware,
    "thermal_aware": ThermalAware,
    "energy_budget": EnergyBudget,
}


def make_policy(choice: PolicyChoice, seed: int) -> Policy:
    """A new policy as the spec wants it. Raises SpecError: no such policy, file, or option."""
    kind = _kind(choice)
    try:
        made = kind(random.Random(seed), **choice.options)
    except (TypeError, ValueError) as e:
        known = [name for name in inspect.signature(kind).parameters if name != "generator"]
        raise SpecError(
            f"policy {choice.name or choice.file}: {e}", remedy=f"its options are: {', '.join(known) or 'none'}"
        ) from e
    if choice.file is not None:
        for name in ("rank", "choose"):
            setattr(made, name, _blamed(getattr(made, name), choice.file))
    return made


def _blamed(asked: Callable[..., Any], path: str) -> Callable[..., Any]:
    """Blame a user's file for what goes wrong while it is asked."""

    def answer(*what: Any) -> Any:
        try:
            return asked(*what)
        except Exception as e:
            where = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename == path]
            line = f":{where[-1]}" if where else ""
            raise SpecError(f"policy.file: {path}{line}: {type(e).__name__}: {e}", remedy="mend the file") from e

    return answer


def _kind(choice: PolicyChoice) -> type[Policy]:
    if choice.file is not None:
        return _own(Path(choice.file))
    if choice.name not in POLICIES:
        raise SpecError(f"policy.name: there is no policy {choice.name!r}", remedy=f"known: {', '.join(POLICIES)}")
    return POLICIES[choice.name]


def _own(path: Path) -> type[Policy]:
    """The class `Policy` of a user's file. Whatever goes wrong in it is the file's fault."""
    found = importlib.util.spec_from_file_location("policy_of_the_user", path)
    if found is None or found.loader is None or not path.is_file():
        raise SpecError(f"policy.file: {path} is no Python file", remedy="name a .py file with a class `Policy`")
    module = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except Exception as e:
        raise SpecError(f"policy.file: {path}: {type(e).__name__}: {e}", remedy="mend the file") from e
    kind: Any = getattr(module, "Policy", None)
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise SpecError(
            f"policy.file: {path} has no class `Policy`",
            remedy="write `class Policy(policies.Policy)` after `from orchestrator.queueing import policies`",
        )
    return kind
