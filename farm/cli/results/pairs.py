"""`NAME=VALUE` in options that may be repeated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

WhereOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value; may be repeated.")
]


def pair(text: str, option: str, form: str) -> tuple[str, str]:
    """Both parts. Raises BadParameter where one is missing; `form`: what is expected, for people."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise typer.BadParameter(f"{text!r} is not {form}", param_hint=option)
    return name, value


def where_of(texts: Iterable[str] | None) -> dict[str, str]:
    """Value by column of `--where`."""
    return dict(pair(text, "--where", "COLUMN=VALUE") for text in texts or ())
