"""Compare one result's predictions with those of the base, example by example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.model.base import Model

from .cell_results import TOP, Answer
from .paired import kappa, mcnemar
from .proportion import Proportion, proportion


class Changed(Model):
    """An example for which another class is best than by the base."""

    example: int
    """Its place in the set."""
    base_class: int
    this_class: int
    label: int | None
    base_margin: float
    """The base's best score less its second best."""
    margin: float


class Comparison(Model):
    """The comparison over the examples for which both have a prediction."""

    same: Proportion
    """The same best class."""
    same_five: Proportion | None
    """The same five best classes, in whatever order; None for networks with fewer than five classes."""
    kappa: float | None
    """Cohen's kappa of the best classes."""
    changed: tuple[Changed, ...]
    """The examples that changed, in the order of the set."""
    became_right: int | None
    """The changed examples that became right; this and the next two only where there are labels."""
    became_wrong: int | None
    mcnemar_p: float | None
    """The p-value that one is right no more often than the other."""


def compare(base: Mapping[int, Answer], this: Mapping[int, Answer], labels: Sequence[int] | None) -> Comparison | None:
    """None where they have no example in common."""
    places = sorted(base.keys() & this.keys())
    best = [(base[place].top[0], this[place].top[0]) for place in places]
    same = proportion(sum(a == b for a, b in best), len(places))
    if same is None:
        return None
    changed = tuple(
        Changed(
            example=place,
            base_class=a,
            this_class=b,
            label=None if labels is None else labels[place],
            base_margin=base[place].margin,
            margin=this[place].margin,
        )
        for place, (a, b) in zip(places, best, strict=True)
        if a != b
    )
    right = sum(one.label == one.this_class for one in changed)
    wrong = sum(one.label == one.base_class for one in changed)
    return Comparison(
        same=same,
        same_five=_same_five(base, this, places),
        kappa=kappa([a for a, _ in best], [b for _, b in best]),
        changed=changed,
        became_right=None if labels is None else right,
        became_wrong=None if labels is None else wrong,
        mcnemar_p=None if labels is None else mcnemar(wrong, right),
    )


def _same_five(base: Mapping[int, Answer], this: Mapping[int, Answer], places: Sequence[int]) -> Proportion | None:
    pairs = [(base[place].top, this[place].top) for place in places]
    if any(min(len(a), len(b)) < TOP for a, b in pairs):
        return None
    return proportion(sum(set(a[:TOP]) == set(b[:TOP]) for a, b in pairs), len(places))
