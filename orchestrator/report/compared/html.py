"""Write a comparison as one HTML file in the style of the report, with no script and nothing to be fetched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .content import Content, headline, notes
from .table import table

FOLDER = Path(__file__).parent.parent


def as_html(content: Content) -> str:
    """The page; every name in it is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # the other forms do not need it
    from markupsafe import Markup, escape

    section = table(content)
    begins = ['<td class="n">' if column.number else "<td>" for column in section.columns]

    def cells(row: Iterable[str]) -> Markup:
        """A loop of the template takes three times as long."""
        return Markup("".join([begin + str(escape(text)) + "</td>" for begin, text in zip(begins, row, strict=True)]))  # noqa: S704

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("compared.html.j2").render(
        a=content.a,
        b=content.b,
        css=Markup((FOLDER / "report.css").read_text()),  # noqa: S704  (our own file)
        facts=headline(content),
        notes=notes(content),
        section=section,
        rows=map(cells, section.rows),
    )
