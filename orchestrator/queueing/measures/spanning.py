"""Figures of a spec beside those of others that it could as well be: intervals that span all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from orchestrator.model.base import Model

from .figures import Figure
from .measure import Measured

WIDE = 0.05
"""The share of the figure: what is farther off is a doubt."""
Told = TypeVar("Told", bound=Model)


def spanning(measured: Measured, others: Sequence[Measured], because: str) -> Measured:
    """The same figures; an interval reaches from the least to the largest end of all. Where the mean or the p99 of the
    sojourn differs by more than `WIDE` that is a doubt, which begins with `because`."""
    if not others:
        return measured
    classes = {name: _span(each, [other.classes[name] for other in others]) for name, each in measured.classes.items()}
    at = {name: _span(each, [other.stations[name] for other in others]) for name, each in measured.stations.items()}
    doubts = [
        f"{because}: {name} of the sojourn from {min(values):.3g} to {max(values):.3g} s, not {values[0]:.3g} s alone"
        for name in ("mean", "p99")
        if (values := _values(name, measured, *others)) and max(values) - min(values) > WIDE * values[0]
    ]
    total = _span(measured.total, [other.total for other in others])
    return replace(measured, classes=classes, stations=at, total=total, doubts=(*measured.doubts, *doubts))


def _values(name: str, *all_of_them: Measured) -> list[float]:
    figures: list[Figure] = [getattr(each.total.sojourn_s, name) for each in all_of_them]
    values = [figure.value for figure in figures]
    return [value for value in values if value is not None] if values[0] is not None else []


def _span(told: Told, others: Sequence[Told]) -> Told:
    """Span all figures in it, however deep."""
    if isinstance(told, Figure):
        ends = [(each.low, each.high) for each in (told, *others) if isinstance(each, Figure)]
        known = [(low, high) for low, high in ends if low is not None and high is not None]
        if told.low is None:
            return told
        return told.model_copy(update={"low": min(low for low, _ in known), "high": max(high for _, high in known)})
    parts = {name: value for name, value in told if isinstance(value, Model)}
    return told.model_copy(
        update={name: _span(value, [getattr(other, name) for other in others]) for name, value in parts.items()}
    )
