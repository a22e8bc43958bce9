"""Write a comparison as one HTML file in the style of the report, with no script and nothing to be fetched."""

from __future__ import annotations

from functools import cache

from orchestrator.report.parts.links import Links

from .content import TITLES, Content, answer, headline, notes, ordered, usable, word
from .table import table

MOST_EXPERIMENTS = 12


def as_html(content: Content, pages: str = "") -> str:
    """The page; every name in it is escaped. `pages`: the address of the farm's pages, where it is known: experiments
    and devices lead there."""
    from markupsafe import Markup, escape  # the other forms need neither

    from orchestrator.report.templates import FOLDER, environment

    section, links = table(content), Links(pages)
    form = "".join('<td class="n">%s</td>' if column.number else "<td>%s</td>" for column in section.columns)

    @cache
    def escaped(text: str) -> str:
        """Most texts of a table stand in many of its rows."""
        return str(escape(text))

    @cache
    def device(serial: str, text: str) -> str:
        return str(links.device(serial, text)) if serial in content.serials else escaped(text)

    groups: dict[str, list[tuple[bool, Markup]]] = {rank: [] for rank in TITLES}
    for number, (row, texts) in enumerate(zip(ordered(content.rows), section.rows, strict=True)):
        # a loop of the template takes three times as long
        cells = Markup(form % (device(row.device, texts[0]), *map(escaped, texts[1:])))  # noqa: S704
        groups[word(row)].append((number in section.bad, cells))
    return (
        environment()
        .get_template("compared.html.j2")
        .render(
            a=content.a,
            b=content.b,
            css=Markup((FOLDER / "report.css").read_text()),  # noqa: S704  (our own file)
            told=(usable(content), answer(content)),
            facts=headline(content),
            notes=notes(content),
            section=section,
            links=links,
            sides=[links.some(each, MOST_EXPERIMENTS) for each in content.experiments],
            groups=[(rank, name, found) for rank, name in TITLES.items() if (found := groups[rank])],
        )
    )
