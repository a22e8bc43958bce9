"""`farm explain`."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Annotated

from rich.markup import escape

from orchestrator.model.errors import UnknownName

from .output import JsonOption, argument, log, out, print_json


def explain(
    word: Annotated[list[str] | None, argument("[WORD]", "As outputs and pages use it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a word of the farm's outputs means; without a word, list all that are explained.

    Example: `farm explain canary`, `farm explain set-up`
    """
    from orchestrator.answers.glossary import glossary

    known = glossary()
    if not word:
        if as_json:
            print_json(known)
            return
        out().print(", ".join(known), markup=False)
        return
    asked = " ".join(word)
    name = _meant(asked, known)
    if as_json:
        print_json({name: known[name]})
        return
    out().print(f"[bold]{escape(name)}[/]: {escape(known[name])}")


def hint(*words: str) -> None:
    """Lead from an output to the glossary, after it, on standard error."""
    log().print(f"[dim]what a word means: `farm explain WORD`, e.g. {', '.join(words)}[/]", highlight=False)


def _meant(asked: str, known: dict[str, str]) -> str:
    """The word itself, in the singular, or however it is spelt. Raises UnknownName with those that are near."""
    by_form = {_form(word): word for word in known}
    whole = _form(asked)
    for form in (whole, whole.removesuffix("s"), re.sub("ies$", "y", whole)):
        if form in by_form:
            return by_form[form]
    near = get_close_matches(_form(asked), by_form, n=3)
    told = f"did you mean {' or '.join(by_form[each] for each in near)}?" if near else "`farm explain` lists all"
    raise UnknownName(f"{asked!r} is not in the glossary", remedy=told)


def _form(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word.lower())
