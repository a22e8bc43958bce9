"""Texts that tell people to run a `farm` command name one that exists, with options and arguments that it takes."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest
import typer
import yaml

from farm.cli.app import application
from orchestrator.model.quantity import counted
from orchestrator.model.record import DoubtCode
from tests.source_tree import ROOT, Module, modules

FARM = typer.main.get_command(application())
COMMANDS = FARM.commands  # type: ignore[attr-defined]
OF_FARM = {"--help", *(name for option in FARM.params for name in option.opts)}
MENTION = re.compile(r"`farm\s+([^`]+)`")


def in_backticks(text: str) -> list[str]:
    return [" ".join(found.split()) for found in MENTION.findall(text)]


def told_by(module: Module) -> Iterator[tuple[str, str]]:
    """(where, command) of every text of a module, and of each `remedy=` that is a command and nothing else."""
    told = list[tuple[ast.AST, str]]()
    for node in module.nodes if "`farm" in module.text or "farm " in module.text else ():
        if (text := _text(node)) is not None:
            told += [(node, command) for command in in_backticks(text)]
        if isinstance(node, ast.keyword) and node.arg == "remedy":
            remedy = _text(node.value) or ""
            if remedy.startswith("farm ") and "`" not in remedy:
                told.append((node, remedy.removeprefix("farm ")))
    yield from ((f"{module.where}:{getattr(node, 'lineno', 0)}", command) for node, command in told)


def _text(node: ast.AST) -> str | None:
    """A string, or an f-string with a word in place of each value."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "WORD" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def told_by_alerts() -> Iterator[tuple[str, str]]:
    (group,) = yaml.safe_load((ROOT / "dashboards" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        for text in rule["annotations"].values():
            plain = re.sub(r"\{\{[^}]*\}\}", "WORD", text)
            yield from ((f"alerts.yml, {rule['alert']}", command) for command in in_backticks(plain))


def told_by_dashboard() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "dashboards" / "grafana" / "boards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            told = in_backticks(panel.get("description", ""))
            yield from ((f"{path.name}, {panel['title']}", command) for command in told)


def told_by_pages() -> Iterator[tuple[str, str]]:
    pages = {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "limits.md"}
    for page in sorted(pages):  # the limits name commands that do not exist, which test_docs checks
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        yield from ((str(page.relative_to(ROOT)), command) for command in in_backticks(text))


@cache
def told() -> tuple[tuple[str, str], ...]:
    """(where, command) of every text of ours, in order."""
    pages = (told_by_alerts(), told_by_dashboard(), told_by_pages())
    return tuple(sorted({each for page in (*pages, *map(told_by, modules().values())) for each in page}))


def fault(words: str) -> str:
    """Return the fault of `farm WORDS`; empty where the command line takes it. A command's bare name is a mention."""
    name, *given = shlex.split(words.partition(" > ")[0].partition("[")[0].replace("...", ""))
    if name.startswith("-"):
        return "" if name in OF_FARM else f"farm itself has no option {name}"
    if name == "COMMAND":
        return ""
    if name not in COMMANDS:
        return f"there is no command {name!r}"
    command = COMMANDS[name]
    commands = getattr(command, "commands", {})
    if given and given[0] in commands:
        command, given = commands[given[0]], given[1:]
    elif "run" in commands:  # `farm tune MODEL` is short for `farm tune run MODEL`
        command = commands["run"]
    if not given or given == ["--help"]:
        return ""
    try:
        command.make_context(name, given)
    except typer.TyperException as e:
        kind = type(e).__name__
        if kind == "BadParameter":
            return ""  # a placeholder is no number and no file
        if kind in ("MissingParameter", "BadOptionUsage") and all(word.startswith("-") for word in given):
            return ""  # a mention of options
        return f"{kind}: {e}"
    return ""


def test_texts_are_found() -> None:
    commands = {command for _, command in told()}
    assert {"status", "devices", "enrol SERIAL", "release WORD", "doctor"} <= commands
    assert any(command in commands for doubt in DoubtCode for command in in_backticks(doubt.remedy))


@pytest.mark.parametrize("words", ["stats", "--frob", "status --why", "status a b", "tune show x"])
def test_a_command_that_does_not_exist_is_found(words: str) -> None:
    assert fault(words)


def test_commands_in_texts_exist_and_take_what_is_given() -> None:
    wrong = [f"{where}: `farm {command}`: {found}" for where, command in told() if (found := fault(command))]
    assert not wrong, "\n".join(wrong)


def test_pages_count_by_one_function() -> None:
    """A page that writes a plural behind a number says "1 devices" at some time: `w.counted` does not."""
    nouns = r"\}\} (?:more )?(?:devices|jobs|blocks|rows|phones|experiments|rounds|records|hosts|steps|runs|samples)\b"
    bounds = "{{ min_blocks }} blocks"  # a number that is never one
    for room in ("dashboards/web/templates", "orchestrator/report"):
        for page in sorted((ROOT / room).glob("**/*.j2")):
            found = re.findall(rf".{{0,30}}{nouns}", page.read_text().replace(bounds, ""))
            assert not found, f"{page.name}: count with `w.counted`: {found}"
    assert [counted(number, "row is", "rows are") for number in range(3)] == ["0 rows are", "1 row is", "2 rows are"]
    assert [counted(number, "device") for number in (0, 1, 2000)] == ["0 devices", "1 device", "2,000 devices"]


SPEAKING = re.compile(r"(orchestrator\.(acts|analysis|answers|energy)|workers|farm)\b")
NUMBER_AND_NOUN = re.compile(r"(?<!\{)\{((?:[^{}]|\{[^{}]*\})+)\} ([a-z]{3,}s)\b(?!/)")
MEASURE = re.compile(r":[^\]]*[gf%]$|\b[A-Z_]{3,}$")
NO_PLURAL = re.compile(
    "answers|asks|begins|belongs|brings|bytes|comes|counts|differs|does|draws|enters|fetches|gives|"
    "goes|hangs|harmless|has|holds|keeps|leads|less|lets|makes|names|needs|process|reads|requests|"
    "runs|says|sends|series|sets|sums|takes|tells|this|warms|was"
)
"""Words behind a number, or a name, that end with an s; bytes come in thousands."""


def test_a_number_and_its_noun_go_by_counted() -> None:
    """`1 jobs` is never said: what stands before a plural is a measure with its digits, a constant, or `counted()`."""
    speaking = [module for name, module in modules().items() if SPEAKING.match(name)]
    found = [(each.where, *told.groups()) for each in speaking for told in NUMBER_AND_NOUN.finditer(each.text)]
    wrong = [each for each in found if not MEASURE.search(each[1]) and not NO_PLURAL.fullmatch(each[2])]
    assert len(found) > 50 and not wrong, wrong
