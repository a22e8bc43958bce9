"""Write a comparison as one HTML file in the style of the report, with no script and nothing to be fetched."""

from __future__ import annotations

from pathlib import Path

from .content import Content, headline, notes
from .table import table

FOLDER = Path(__file__).parent.parent


def as_html(content: Content) -> str:
    """The page; the template engine escapes every name in it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # the other forms do not need it
    from markupsafe import Markup

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
        section=table(content),
    )
