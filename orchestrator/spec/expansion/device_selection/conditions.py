"""Turn a parse tree into conditions whose types, units and values are checked before any device is looked at."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from lark import Token, Transformer, v_args
from lark.tree import Meta

from orchestrator.model.device import Device
from orchestrator.model.errors import SpecError

from .facts import FACTS, UNITS, FactType, Value, shown

MAX_PATTERN_CHARS = 100
MAX_QUANTIFIERS = 3
"""The most quantifiers: with texts of at most MAX_TEXT_CHARS, the worst backtracking takes milliseconds."""
MAX_TEXT_CHARS = 128


@dataclass(frozen=True)
class Term:
    """A value of the expression: a fact by name, or a literal. `place` is its offset in the expression."""

    type: FactType
    read: Callable[[Device], Value]
    place: int
    fact: str = ""


@dataclass(frozen=True)
class Node:
    """A condition: whether it holds for a device, and in words why it does not."""

    holds: Callable[[Device], bool]
    why_not: Callable[[Device], str]


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


_NO_DEVICE: Any = None
"""Literals do not look at the device."""
_EXAMPLES = {
    FactType.TEXT: '== "..."',
    FactType.NUMBER: ">= 29",
    FactType.SIZE: ">= 3 GiB",
    FactType.PERCENT: ">= 40 %",
    FactType.CELSIUS: "<= 35 C",
    FactType.FLAG: "== true",
    FactType.SET: '"..." in apis',
}


def pointed(expression: str, place: int, message: str) -> str:
    """A message with the place in the expression marked."""
    line = expression.replace("\n", " ")
    return f"device expression, column {place + 1}: {message}\n    {line}\n    {' ' * place}^"


@v_args(meta=True)
class Builder(Transformer[Token, Node]):
    """Parse tree -> checked conditions."""

    def __init__(self, expression: str) -> None:
        super().__init__()
        self._expression = expression

    # conditions

    def any(self, _meta: Meta, nodes: list[Node]) -> Node:
        return Node(lambda d: any(n.holds(d) for n in nodes), lambda d: " and ".join(n.why_not(d) for n in nodes))

    def all(self, _meta: Meta, nodes: list[Node]) -> Node:
        return Node(
            lambda d: all(n.holds(d) for n in nodes),
            lambda d: "; ".join(n.why_not(d) for n in nodes if not n.holds(d)),
        )

    def negated(self, meta: Meta, nodes: list[Node]) -> Node:
        text = self._text(meta)
        return Node(lambda d: not nodes[0].holds(d), lambda _: f"{text} is not met")

    def always(self, _meta: Meta, _nodes: list[Node]) -> Node:
        return Node(lambda _: True, lambda _: "")

    def never(self, _meta: Meta, _nodes: list[Node]) -> Node:
        return Node(lambda _: False, lambda _: "`false` matches nothing")

    def comparison(self, meta: Meta, parts: list[Any]) -> Node:
        left, sign, right = parts
        self._check_comparison(left, sign, right)
        compare = _COMPARE[sign]

        def holds(device: Device) -> bool:
            a, b = left.read(device), right.read(device)
            return a is not None and b is not None and compare(a, b)

        return self._test(meta, holds, left, right)

    def membership(self, meta: Meta, parts: list[Term]) -> Node:
        item, container = parts
        if container.type is not FactType.SET or item.type is not FactType.TEXT:
            self._fail(item.place, 'write `"vulkan" in apis` or `serial in ["A", "B"]`')
        self._check_values(container, item)

        def holds(device: Device) -> bool:
            values = container.read(device)
            return isinstance(values, frozenset) and item.read(device) in values

        return self._test(meta, holds, item, container)

    def listed(self, meta: Meta, parts: list[Term]) -> Node:
        item, *choices = parts
        for choice in choices:
            self._check_comparison(item, "==", choice)
        return self._test(meta, lambda d: item.read(d) in {c.read(d) for c in choices}, item)

    def pattern(self, meta: Meta, parts: list[Any]) -> Node:
        term = self.name(meta, parts[:1])
        if term.type is not FactType.TEXT:
            self._fail(term.place, f"`~` compares texts, and {term.fact} is {term.type}")
        compiled = self._regex(parts[1])

        def holds(device: Device) -> bool:
            value = term.read(device)
            return value is not None and compiled.fullmatch(str(value)[:MAX_TEXT_CHARS]) is not None

        return self._test(meta, holds, term)

    def flag(self, meta: Meta, parts: list[Token]) -> Node:
        term = self.name(meta, parts)
        if term.type is not FactType.FLAG:
            self._fail(term.place, f"{term.fact} is {term.type}: compare it, e.g. `{term.fact} {_EXAMPLES[term.type]}`")
        return self._test(meta, lambda d: term.read(d) is True, term)

    # operands

    def name(self, _meta: Meta, parts: list[Token]) -> Term:
        name = str(parts[0])
        fact = FACTS.get(name)
        if fact is None:
            near = get_close_matches(name, FACTS, n=1)
            hint = f"did you mean `{near[0]}`? " if near else f'a text is written in quotes: "{name}"; '
            self._fail(parts[0].start_pos or 0, f"unknown name `{name}`; {hint}known names: {', '.join(FACTS)}")
        return Term(fact.type, fact.read, parts[0].start_pos or 0, name)

    def text(self, meta: Meta, parts: list[Token]) -> Term:
        value = str(parts[0])[1:-1]
        return Term(FactType.TEXT, lambda _: value, meta.start_pos)

    def number(self, meta: Meta, parts: list[Token]) -> Term:
        kind, factor = FactType.NUMBER, 1.0
        if len(parts) == 2:
            if parts[1] not in UNITS:
                self._fail(parts[1].start_pos or 0, f"unknown unit `{parts[1]}`; units: {', '.join(UNITS)}")
            kind, factor = UNITS[parts[1]]
        value = float(parts[0]) * factor
        return Term(kind, lambda _: value, meta.start_pos)

    def yes(self, meta: Meta, _: list[Token]) -> Term:
        return Term(FactType.FLAG, lambda _: True, meta.start_pos)

    def no(self, meta: Meta, _: list[Token]) -> Term:
        return Term(FactType.FLAG, lambda _: False, meta.start_pos)

    # checks

    def _check_comparison(self, left: Term, sign: str, right: Term) -> None:
        if left.type is not right.type:
            named = left if left.fact else right
            subject = f"{named.fact} is {named.type}" if named.fact else f"{left.type} is compared with {right.type}"
            self._fail((right if left.fact else left).place, f"{subject}; write e.g. `{_EXAMPLES[named.type]}`")
        if left.type is FactType.SET:
            self._fail(left.place, f'{left.fact} is a set: write `"..." in {left.fact}`')
        if left.type in (FactType.TEXT, FactType.FLAG) and sign not in ("==", "!="):
            self._fail(left.place, f"`{sign}` compares numbers; {left.type} is compared with == or !=")
        self._check_values(left, right)
        self._check_values(right, left)

    def _check_values(self, fact: Term, literal: Term) -> None:
        """A text that the fact can never have is a typing error."""
        allowed = FACTS[fact.fact].values if fact.fact else ()
        if not allowed or literal.fact:
            return
        value = str(literal.read(_NO_DEVICE))
        if value not in allowed:
            near = get_close_matches(value, allowed, n=1)
            hint = f'did you mean "{near[0]}"? ' if near else ""
            self._fail(literal.place, f'{fact.fact} is never "{value}"; {hint}allowed: {", ".join(allowed)}')

    def _regex(self, term: Term) -> re.Pattern[str]:
        text = str(term.read(_NO_DEVICE))
        if len(text) > MAX_PATTERN_CHARS or sum(text.count(c) for c in "*+?{") > MAX_QUANTIFIERS:
            self._fail(
                term.place, f"at most {MAX_PATTERN_CHARS} characters and {MAX_QUANTIFIERS} of * + ? {{ in a pattern"
            )
        if re.search(r"\(\?|\)[*+?{]|\\[1-9]", text):
            self._fail(term.place, "groups may not be repeated, referred to or carry options; use plain ( | )")
        try:
            return re.compile(text)
        except re.error as e:
            self._fail(term.place, f"not a regular expression: {e}")

    # words

    def _test(self, meta: Meta, holds: Callable[[Device], bool], *terms: Term) -> Node:
        text, facts = self._text(meta), [t for t in terms if t.fact]

        def why_not(device: Device) -> str:
            here = ", ".join(shown(t.read(device), t.type) for t in facts)
            return f"{text} (here {here})" if facts else f"{text} is false"

        return Node(holds, why_not)

    def _text(self, meta: Meta) -> str:
        return self._expression[meta.start_pos : meta.end_pos]

    def _fail(self, place: int, message: str) -> NoReturn:
        raise SpecError(pointed(self._expression, place, message))
