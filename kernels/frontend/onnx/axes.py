"""Axes that the attributes and inputs of a node name."""

from __future__ import annotations

from .steps import Steps


def axes_of(s: Steps, rank: int) -> list[int]:
    """An input or attribute; all where it is absent, or none where the node says so."""
    given = s.whole_numbers(1, "axes")
    if given:
        return s.node.distinct_axes(given, rank)
    return [] if s.attribute("noop_with_empty_axes", 0) else list(range(rank))


def softmax_axes(s: Steps, rank: int) -> list[int]:
    """One axis since opset 13, before all from it on."""
    since = s.node.opset >= 13
    axis = s.node.axis(s.attribute("axis", -1 if since else 1), rank)
    return [axis] if since else list(range(axis, rank))


def letters_of(s: Steps, equation: str, names: list[str]) -> tuple[list[str], str]:
    """Letters of each operand and of the result; what `...` stands for gets letters too."""
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(names):
        s.node.damaged(f"equation {equation!r} has not {len(names)} operands")
    spare = [chr(code) for code in range(0x3B1, 0x3B1 + 24)]
    longest = 0
    for index, (term, name) in enumerate(zip(terms, names, strict=True)):
        more = len(s.shape(name)) - len(term.replace("...", ""))
        if more < 0 or (more and "..." not in term):
            s.node.damaged(f"{term!r} does not fit shape {s.shape(name)}")
        terms[index] = term.replace("...", "".join(spare[len(spare) - more :]))
        longest = max(longest, more)
    every = "".join(terms)
    dots = "".join(spare[len(spare) - longest :])
    if not arrow:
        result = dots + "".join(sorted({x for x in every if every.count(x) == 1 and x not in dots}))
    result = result.replace("...", dots)
    if len(set(result)) < len(result):
        s.node.damaged(f"equation {equation!r} names an axis of its result twice")
    return terms, result
