"""Scripts are split as a POSIX shell splits them, or refused by name."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtual_phones.shell.grammar import Command, parse
from virtual_phones.shell.words import GrammarError


def words(command: Command) -> list[str]:
    return ["".join(segment.text for segment in word) for word in command.words]


def only(script: str) -> Command:
    (chain,) = parse(script)
    (command,) = chain.first.commands
    return command


arguments = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)


@given(st.lists(arguments, min_size=1, max_size=5))
def test_what_was_quoted_comes_back(argv: list[str]) -> None:
    assert words(only("run " + shlex.join(argv))) == ["run", *argv]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        (r"a\ b c\'d", ["a b", "c'd"]),
        ("""a"b c"'d e'f""", ["ab cd ef"]),
        (r'''"a\"b\$c\d"''', [r'a"b$c\d']),
        ("a # comment", ["a"]),
        ("a#b", ["a#b"]),
        ("''", [""]),
    ],
)
def test_words(script: str, expected: list[str]) -> None:
    assert words(only(script)) == expected


def test_chains_pipelines_and_redirections() -> None:
    first, second = parse("a && b || c | d; e > f 2>&1 &")
    assert [operator for operator, _ in first.rest] == ["&&", "||"]
    assert len(first.rest[1][1].commands) == 2
    assert not first.background
    assert second.background
    shown = [(r.descriptor, r.operator) for r in second.first.commands[0].redirections]
    assert shown == [(1, ">"), (2, ">&")]


def test_groups_and_assignments() -> None:
    command = only("(A=1 B='x y' run; { other; })")
    assert command.group is not None
    run, inner = command.group
    assert [name for name, _ in run.first.commands[0].assignments] == ["A", "B"]
    assert words(run.first.commands[0]) == ["run"]
    assert inner.first.commands[0].group is not None


def test_an_equals_sign_behind_the_command_is_a_word() -> None:
    assert words(only("dd if=/dev/zero")) == ["dd", "if=/dev/zero"]


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 'a", "no closing quote"),
        ('echo "a', "no closing quote"),
        ("(a", r"'\)' expected"),
        ("a )", "unexpected"),
        ("a &&", "unexpected end of file"),
        ("| a", r"unexpected '\|'"),
        ("a >", "file name"),
        ("if true; then a; fi", "'if'"),
        ("for x in a; do b; done", "'for'"),
        ("cat <<EOF", "here-documents"),
        ("echo `a`", "back quotes"),
        ("echo $(a", "closing parenthesis"),
        ("echo ${a:-b}", "'[$]{a:-b}' is not part of a virtual phone's shell"),
        ("echo ${#a}", "not part of a virtual phone's shell"),
        ("echo $1", r"'\$1' is not part"),
        ("sleep 1 & echo $!", r"'\$!' is not part"),
        ("echo $((1 + 2))", "not part of a virtual phone's shell"),
        ("((x = 1))", "not part of a virtual phone's shell"),
        ("[[ a = b ]]", r"'\[\[' is not part"),
        ("echo ${a b}", "bad substitution"),
    ],
)
def test_what_is_not_understood_is_refused(script: str, complaint: str) -> None:
    with pytest.raises(GrammarError, match=complaint):
        parse(script)


@given(st.text(st.sampled_from("ab '\"\\$(){}|&;<>\n#=2"), max_size=30))
def test_any_text_is_parsed_or_refused(script: str) -> None:
    try:
        parse(script)
    except GrammarError as refused:
        assert str(refused)


def test_a_comment_ends_with_its_line() -> None:
    assert [words(chain.first.commands[0]) for chain in parse("a # b; c\nd")] == [["a"], ["d"]]
