"""The documentation says what is so: commands and options exist, examples load, links lead somewhere."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.engine.zoo import coverage
from kernels.frontend.onnx import OPERATORS
from kernels.frontend.onnx.rewriting.runtime import DOMAIN
from orchestrator import nightly, spec
from orchestrator.model.experiment import Experiment, Published
from orchestrator.spec.expansion.device_selection.facts import FACTS
from tests.source_tree import ROOT, modules
from tests.test_remedies import COMMANDS, FARM
from workers.engines import Engines, Host

EVERYWHERE = {"--help", "-h", "--json", "--state"}


@cache
def tracked() -> tuple[Path, ...]:
    """Files of the repository; in an unpacked archive every file that no tool has made."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        return tuple(path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file())
    made = {".venv", ".farm", "build", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis"}
    return tuple(path for path in ROOT.rglob("*") if path.is_file() and not made & set(path.parts))


NOTES = ROOT / "docs" / "archive" / "notes"
"""Notes of the way here, which nobody maintains: of them the list of contents alone is a page."""


def pages() -> list[Path]:
    return [each for each in tracked() if each.suffix == ".md" and (each.parent != NOTES or each.name == "README.md")]


def blocks(page: Path, language: str = "") -> list[str]:
    """Contents of a page's fenced blocks, dedented."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", page.read_text(), re.MULTILINE | re.DOTALL)
    return ["\n".join(line.removeprefix(indent) for line in body.splitlines()) for indent, body in found]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def options(command: str) -> set[str]:
    """Every option of a command, in all its spellings; of a group, those of all commands in it."""
    own = [COMMANDS[command], *getattr(COMMANDS[command], "commands", {}).values()]
    spelled = [p for each in own for p in each.params if p.param_type_name == "option"]
    return EVERYWHERE | {name for p in spelled for name in (*p.opts, *p.secondary_opts)}


def section(command: str) -> str:
    match = re.search(rf"^### farm {command}\n(.*?)(?=^##|\Z)", CLI, re.MULTILINE | re.DOTALL)
    assert match, f"docs/cli.md has no section `### farm {command}`"
    return match[1]


CLI = (ROOT / "docs" / "cli.md").read_text()
FARM_PAGES = (
    "way-of-a-job",
    "model",
    "scheduling",
    "tasks",
    "ledger",
    "people-and-api",
    "logging-in",
    "session",
    "statistics",
)
ENGINE_PAGES = ("plan", "frontend", "engine-gpu", "engine-cpu", "language-models")


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_described_with_its_options(command: str) -> None:
    text = section(command)
    if "#the-compilers-options" in text:
        text += CLI.partition("#### The compiler's options")[2].partition("\n#")[0]
    missing = [name for name in sorted(options(command) - EVERYWHERE) if name not in text]
    assert len(text.split()) >= 5 and not missing, f"docs/cli.md, farm {command}: say something of {missing}"


def test_no_command_is_described_that_does_not_exist() -> None:
    assert set(re.findall(r"^### farm (\S+)", CLI, re.MULTILINE)) == set(COMMANDS)


def test_commands_in_examples_exist() -> None:
    wrong = []
    for page in pages():
        for line in re.findall(r"^ *(?:\.venv/bin/)?(farm [a-z].*)", "\n".join(blocks(page)), re.MULTILINE):
            words = shlex.split(line, comments=True)
            known = options(words[1]) if words[1] in COMMANDS else set()
            given = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
            if words[1] not in COMMANDS or given - known:
                wrong.append(f"{name_of(page)}: {line}")
    assert not wrong, "\n".join(wrong)


def test_make_targets_in_documents_exist() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    told = {
        (target, name_of(page))
        for page in pages()
        for target in re.findall(r"(?:`|^ *)make ([a-z-]+)\b", page.read_text(), re.MULTILINE)
    }
    assert told and {each for each in told if each[0] not in known} == set()


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    dead = [target for target in targets if not (page.parent / target.partition("#")[0]).resolve().exists()]
    assert not dead


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").rglob("*.yaml")), ids=name_of)
def test_example_experiment_loads(path: Path) -> None:
    if path.parent.name == "published":
        assert spec.load_study(path).source
    else:
        assert (nightly.load if path.parent.name == "suites" else spec.load)(path).name


def test_experiments_in_documents_are_valid(tmp_path: Path) -> None:
    """Each engine of a matrix has one of its backends."""
    engines = Engines(Host.alone(tmp_path))
    experiments = [text for page in pages() for text in blocks(page, "yaml") if "workload:" in text]
    assert experiments
    for text in experiments:
        found = spec.parse(text, "a document")
        named = yaml.safe_load(text).get("matrix", {}).get("engine", "pocketfarm")
        for name in [named] if isinstance(named, str) else named:
            apis = engines.engine(name).apis
            assert {*apis} & {*found.matrix.backend}, f"{found.name}: {name} is excluded from all of it"


def test_published_figures_in_documents_fit_what_stands_beside_them() -> None:
    study, beside = (yaml.safe_load(text) for text in blocks(ROOT / "docs/howto/published-figures.md", "yaml"))
    assert Published.model_validate({**beside["published"], "study": study}).tables


def test_the_first_experiment_is_one_file() -> None:
    """README and the how-to show the file that they run, which the tests run too."""
    file = (ROOT / "experiments" / "mine.yaml").read_text().strip()
    for page in (ROOT / "README.md", ROOT / "docs" / "howto" / "first-experiment.md"):
        first = next(text for text in blocks(page, "yaml") if "workload:" in text)
        assert first.strip() == file, f"{name_of(page)} does not show experiments/mine.yaml as it is"
        assert "farm run experiments/mine.yaml --wait" in page.read_text()


def test_limits_are_those_of_now() -> None:
    """Each row quotes words that its file has, in cells of at most 25 words; what does not exist does not."""
    lines = re.findall(r"^\| (?!what \|)(.+)\|$", (ROOT / "docs" / "limits.md").read_text(), re.MULTILINE)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    wrong = [row for row in rows if len(row) != 3 or max(len(cell.split()) for cell in row) > 25]
    told = {row[0]: re.findall(r"`([^`]+)` \(`([^`]+)`\)", row[1]) for row in rows}
    absent = {name for row in rows for name in re.findall(r"^`farm (\w+)` does not exist$", row[1])}
    lifted = [what for what, each in told.items() if any(said not in (ROOT / name).read_text() for said, name in each)]
    assert wrong == lifted == [] and sum(not each for each in told.values()) == len(absent) > 0
    assert len(told) == len(rows) and absent.isdisjoint(COMMANDS)


def test_every_guarantee_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (.+) \|$", (ROOT / "docs" / "guarantees.md").read_text(), re.MULTILINE)[1:]
    named = {fault: re.findall(r"`(test_\w+)`", tests) for fault, _, _, tests in (row.split(" | ") for row in rows)}
    source = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    gone = [name for names in named.values() for name in names if f"def {name}(" not in source]
    assert len(named) == len(rows) > 0 and all(named.values()) and gone == []


def test_every_operator_of_onnx_is_listed() -> None:
    listed = (ROOT / "docs" / "limits.md").read_text().partition("## ONNX operators")[2]
    assert set(re.findall(r"`(\w+)`", listed)) == OPERATORS.names() | OPERATORS.names(DOMAIN)


def fields(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Iterator[str]:
    """Every field of a JSON Schema, with those of its objects as `object.field`."""
    root = root or schema
    for name, field in schema.get("properties", {}).items():
        yield name
        for choice in (field, *field.get("anyOf", ())):
            inner = root["$defs"].get(choice.get("$ref", "").rpartition("/")[2], {})
            yield from (f"{name}.{each}" for each in fields(inner, root))


def test_every_field_of_an_experiment_is_described() -> None:
    page = (ROOT / "docs" / "howto" / "write-an-experiment.md").read_text()
    told = set(re.findall(r"`([a-z_0-9.]+)`", page)) | set(re.findall(r"\*\*(\w+)\*\*", page))
    known = set(fields(Experiment.model_json_schema()))
    assert "conditions.airplane_mode" in known
    missing = sorted(known - told)
    assert not missing, f"give each a row in docs/howto/write-an-experiment.md (its place: the field's own): {missing}"
    rooms = {name.partition(".")[0] for name in known if "." in name}
    assert {name for name in told if name.partition(".")[0] in rooms} - known - {"devices.where"} == set()


def test_every_fact_of_a_device_is_described() -> None:
    page = (ROOT / "docs" / "howto" / "write-an-experiment.md").read_text()
    assert [name for name in FACTS if f"`{name}`" not in page] == []


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", index.read_text())}
    assert {path for path in pages() if path.is_relative_to(ROOT / "docs")} - linked - {index} == set()
    listed = (NOTES / "README.md").read_text()
    assert [p.name for p in sorted(NOTES.glob("0*.md")) if f"({p.name})" not in listed] == []


@pytest.mark.parametrize("name", FARM_PAGES + ENGINE_PAGES)
def test_a_page_of_the_present_is_short_and_names_what_holds_it(name: str) -> None:
    """Hold the length of its prose and its names; `test_files_named_in_documents_exist` says whether its modules
    exist. Names in tables are no prose: acts and routes must stand there."""
    text = (ROOT / "docs" / "architecture" / f"{name}.md").read_text()
    modules, held = set(re.findall(r"`(\w+/[\w/.-]+)`", text)), set(re.findall(r"`(test_\w+)`", text))
    words = len(re.sub(r"(?m)^\|.*", lambda row: re.sub("`[^`]+`", "", row[0]), text).split())
    assert words <= 800, f"docs/architecture/{name}.md has {words} words of prose: say it in 800"
    assert len(modules) >= 5
    assert len(held) >= 3 and held <= {each.stem for each in (ROOT / "tests").rglob("test_*.py")}


def test_nothing_but_benchmarks_refers_to_the_notes() -> None:
    """The pages hold what binds; the origin of a figure may be a note."""
    referring = re.compile(r"\b[Dd]ecisions?[ /]\d|archive/notes/\d")
    apart = {NOTES, ROOT / "benchmarks", ROOT / "CHANGELOG.md"}
    texts = {path: path.read_text(errors="ignore") for path in tracked() if apart.isdisjoint({path, *path.parents})}
    assert [name_of(path) for path, text in texts.items() if referring.search(text)] == []


def test_what_to_touch_is_there() -> None:
    """CONTRIBUTING's table of common changes names files and registries that exist."""
    rows = re.findall(r"^\| (?:an?|another|its) (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert len(rows) > 12 and all(len(row) == 4 and all(row[:3]) for row in cells), "only tests and pages may be empty"
    named = [pair for row in rows for pair in re.findall(r"`(\w+)` (?:in|of) `([^`]+)`", row)]
    assert len(named) > 12, "a registry is named as `NAME` in `file`"
    assert [name for name, file in named if not re.search(rf"\b{name}\b", (ROOT / file).read_text())] == []


def test_files_named_in_documents_exist() -> None:
    rooms = "kernels|orchestrator|workers|device_agent|farm|dashboards|tests|experiments|scripts|docs"
    dead = [
        f"{name_of(page)}: {name}"
        for page in pages()
        for name in re.findall(rf"`((?:{rooms})/[\w/.-]+)`", page.read_text())
        if not (ROOT / name).exists() and "build" not in name
    ]
    assert not dead, "\n".join(dead)


MOST_WORDS, MEAN_WORDS, MOST_IN_A_CELL = 35, 15, 46
"""The words of the longest sentence, of the mean one, and of a guarantee's longest cell."""
_ENDS = re.compile(r"(?<=[.!?])[\"')*_`]*\s+(?=[\[\"'(*_`]*[A-Z0-9`])")


def sentences(text: str) -> Iterator[str]:
    """The sentences of prose, list items and cells; neither `;` nor `:` ends one. What is code is one word."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", re.sub(r"`[^`\n]+(?:\n[^`\n]+)?`", "`code`", text))
    text = re.sub(r"^(?=\s*(?:[-*]|\d+\.) |#+ |>|<)", "\n", text.replace("|", "\n\n"), flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from _ENDS.split(" ".join(paragraph.split()))


def words(sentence: str) -> int:
    """Return how many there are; a list of names has none."""
    found = [each for each in sentence.split() if re.search(r"\w", each)]
    return len(found) if any("`code`" not in each for each in found) else 0


def texts_of_commands(command: Any, name: str = "farm") -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    yield from ((f"{name} {each.name}", getattr(each, "help", None) or "") for each in command.params)
    for own, inner in getattr(command, "commands", {}).items():
        yield from texts_of_commands(inner, f"{name} {own}")


def test_sentences_are_short() -> None:
    texts = {name_of(page): page.read_text() for page in pages() if page.parent != NOTES}
    texts |= dict(texts_of_commands(FARM))
    counted = {name: [(words(each), each) for each in sentences(text)] for name, text in texts.items()}
    assert not [(name, *each) for name, found in counted.items() for each in found if each[0] > MOST_WORDS]
    prose = [count for found in counted.values() for count, _ in found if count > 3]
    assert len(prose) > 3000 and sum(prose) / len(prose) <= MEAN_WORDS


def test_a_guarantee_is_no_paragraph() -> None:
    lines = [line for line in (ROOT / "docs" / "guarantees.md").read_text().splitlines() if line.startswith("| ")]
    cells = [re.sub(r"`test_\w+`,?", "", cell) for line in lines for cell in line.split("|")]
    assert len(lines) > 50 and not [cell for cell in cells if len(cell.split()) > MOST_IN_A_CELL]


def test_no_path_of_one_machine() -> None:
    machine = re.compile(r"(?<![\w.])/(?:home|Users|work|root)/[\w.]+")
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{name_of(path)}: {match}" for match in machine.findall(text)]
    assert not found, "\n".join(found)


SYNONYMS = {
    r"combinations?": "configuration (or setting)",
    r"variants?": "configuration, result or version",
    r"(?:undo(?:es)?|undone)": "restore, put back",
    r"(?:smart ?phones?|handsets?)": "phone",
    r"(?:the|a|an|its|each|cold|warm|of|during|before|after) (?:set up|setup)": "set-up (noun)",
    r"set-?ups? (?:it|them|the)": "set up (verb)",
}
"""Words that docs/glossary.md has another word for -> that word."""


_LIKELY = re.compile(r"combination|variant|undo|smart|handset|set\W{0,30}up", re.IGNORECASE)
"""One of their parts: a file without any is not parsed."""


def user_texts() -> Iterator[tuple[str, str]]:
    """(where, text) of pages, of the help of commands, and of texts and docstrings in the code."""
    for page in pages():
        yield name_of(page), re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for name, command in COMMANDS.items():
        for each in (command, *getattr(command, "commands", {}).values()):
            helps = [getattr(parameter, "help", None) or "" for parameter in each.params]
            yield f"farm {name} --help", "\n".join([each.help or "", *helps])
    for module in modules().values():
        if module.where.startswith(("farm/", "orchestrator/", "workers/")) and _LIKELY.search(module.text):
            for node in module.nodes:
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{module.where}:{node.lineno}", re.sub(r"`[^`\n]*`", "", node.value)


def synonyms(text: str) -> list[str]:
    """Return what is wrong with a text; empty where it uses the words of the glossary."""
    return [
        f"{found[0]!r}, say {word}"
        for pattern, word in SYNONYMS.items()
        for found in re.finditer(rf"\b{pattern}\b", text, re.IGNORECASE)
    ]


def test_one_thing_has_one_word() -> None:
    assert len(synonyms("Undo the setup of every Combination")) == 3
    wrong = [f"{where}: {found}" for where, text in user_texts() for found in synonyms(text)]
    assert not wrong, "\n".join(wrong)


def test_the_glossary_defines_each_word_once_and_in_order() -> None:
    words = re.findall(r"^\*\*(.+?)\*\*:", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert words == sorted(set(words), key=lambda word: word.replace("-", " ")) and {
        "configuration",
        "result",
        "set-up",
    } <= {*words}


def test_an_option_has_the_same_short_letter_in_all_commands() -> None:
    found: dict[str, set[tuple[str, ...]]] = {}
    for command in COMMANDS.values():
        for each in (command, *getattr(command, "commands", {}).values()):
            for option in each.params:
                for name in option.opts if option.param_type_name == "option" else ():
                    letters = (each for each in option.opts if len(each) == 2 or name == "-d")
                    found.setdefault(name, set()).add(tuple(sorted(letters)))
    assert found["-d"] == {("--device", "-d")}
    assert {name: spelled for name, spelled in found.items() if len(spelled) > 1} == {}


def test_the_table_of_exports_counts_the_raw_files() -> None:
    page = (ROOT / "benchmarks" / "engine" / "README.md").read_text()
    wanted = coverage.table(coverage.verdicts_of(sorted(coverage.RESULTS.glob("*-zoo*.json"))))
    assert wanted in page, "put in what `python -m benchmarks.engine.zoo.coverage` prints"
