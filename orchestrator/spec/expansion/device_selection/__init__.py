"""Select devices by a small expression language over their facts. Never `eval`.

    gpu_vendor == "adreno" and memory >= 3 GiB and "vulkan" in apis
    kind == "workstation" or (model ~ "SM-.*" and battery > 40 % and not charging)
    serial in ["R58M", "R59N"]

A comparison with a fact that the device does not tell (a workstation's battery) is false. `~` matches the whole text
against a regular expression that is kept small enough to always end quickly. Types and units are checked when the
expression is parsed, not when a device is met.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from orchestrator.model.device import Device
from orchestrator.model.errors import SpecError

from .conditions import Builder, Node, pointed

MAX_CHARS = 1000

GRAMMAR = r"""
?start: any
?any: all ("or" all)*
?all: negation ("and" negation)*
?negation: "not" negation -> negated
         | test
?test: "(" any ")"
     | "true" -> always
     | "false" -> never
     | operand COMPARE operand -> comparison
     | operand "in" operand -> membership
     | operand "in" "[" [text ("," text)* [","]] "]" -> listed
     | NAME "~" text -> pattern
     | NAME -> flag
?operand: NAME -> name
        | text
        | NUMBER UNIT? -> number
        | "true" -> yes
        | "false" -> no
text: STRING
COMPARE: "==" | "!=" | "<=" | ">=" | "<" | ">"
STRING: /"[^"\n]*"|'[^'\n]*'/
NUMBER: /[-+]?\d+(\.\d+)?([eE][-+]?\d+)?/
UNIT: /%|°?[A-Za-z]+/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
%import common.WS
%ignore WS
"""


@dataclass(frozen=True)
class Selection:
    """A parsed expression."""

    expression: str
    root: Node

    def matches(self, device: Device) -> bool:
        return self.root.holds(device)

    def why_not(self, device: Device) -> str:
        """Return what keeps a device out, e.g. `gpu_vendor == "adreno" (here "mali")`; empty where it matches."""
        return "" if self.matches(device) else self.root.why_not(device)


def parse(expression: str) -> Selection:
    """Parse and type-check an expression. Raises SpecError with the position and what is allowed there."""
    if len(expression) > MAX_CHARS:
        raise SpecError(f"device expression: {len(expression)} characters; at most {MAX_CHARS} are allowed")
    try:
        root = Builder(expression).transform(_grammar().parse(expression))
    except UnexpectedInput as e:
        raise _syntax_error(expression, e) from e
    except VisitError as e:
        raise e.orig_exc from None
    except RecursionError as e:
        raise SpecError("device expression: nested too deeply") from e
    return Selection(expression, root)


@lru_cache
def _grammar() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=False)


_TOKEN_NAMES = {
    "NAME": "a name", "STRING": 'a text in "quotes"', "NUMBER": "a number", "UNIT": "a unit",
    "COMPARE": "== != < <= > >=",
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "COMMA": ",", "__ANON_0": "~", "TILDE": "~", "$END": "the end",
}  # fmt: skip


def _syntax_error(expression: str, error: UnexpectedInput) -> SpecError:
    place = error.pos_in_stream if error.pos_in_stream is not None else len(expression)
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        place = len(expression) if error.token.type == "$END" else place
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    found = expression[place : place + 12].split(" ")[0] if place < len(expression) else "the end"
    wanted = ", ".join(sorted(_TOKEN_NAMES.get(name, name.lower()) for name in expected))
    return SpecError(pointed(expression, place, f"unexpected `{found}`; expected {wanted}"))
