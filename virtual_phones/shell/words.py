"""Words, operators and redirections of a shell script: the first half of `shell_grammar`."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERATED = re.compile(r"[A-Za-z_]\w*[-:=?+%#/@^,[]|[#!%]|\d+$|[@*]$")
_PARAMETER = re.compile(r"\$[0-9#@*!-]")
_BLANKS = re.compile(r"[ \t]+")
_VARIABLE = re.compile(r"[?$]|[A-Za-z_]\w*")
_WORD_END = r"(?=[ \t\n;&|()]|\Z)"
_TOKEN = re.compile(
    rf"""[ \t]*(?:
    (?P<plain>[^ \t\n;&|()<>'"\\`$\#]+){_WORD_END}
    |'(?P<quoted>[^']*)'{_WORD_END}
    |\$(?P<variable>\?){_WORD_END}
    |(?P<operator>&&|\|\||&>|[;&|)\n]|\((?!\())
    |(?P<redirection>(?P<descriptor>\d?)(?P<way>>>|>&|>|<(?!<)))
    |(?P<comment>\#[^\n]*)
    )""",
    re.VERBOSE,
)
"""The commonest tokens, with the blanks before them: a word that means itself, stands in single quotes or is the last
status (before `<` and `>` digits are no word), an operator, a redirection."""
_PLAIN = {False: re.compile(r"[^ \t\n;&|()<>'\"\\`$]+"), True: re.compile(r"[^\"\\`$]+")}
"""Characters that mean themselves, outside of double quotes and within."""


class GrammarError(ValueError):
    """The script cannot be parsed; the text is what the phone's shell would print after `sh: `."""


class Segment(NamedTuple):
    """Part of a word."""

    kind: Literal["text", "variable", "substitution"]
    text: str
    quoted: bool


Word = tuple[Segment, ...]


Token = str | Word | tuple[int, str]
"""An operator, a word, or a redirection as (descriptor, operator); descriptor -1 is both outputs."""


def tokens(script: str) -> list[Token]:
    """Split a script. Raises GrammarError."""
    found: list[Token] = []
    at, end = 0, len(script)
    while at < end:
        if token := _TOKEN.match(script, at):
            at = token.end()
            match kind := token.lastgroup:
                case "plain" | "quoted":
                    found.append((Segment("text", token[kind], kind == "quoted"),))
                case "operator":
                    operator = token["operator"]
                    found.append((-1, ">") if operator == "&>" else operator)
                case "redirection":
                    way = token["way"]
                    found.append((int(token["descriptor"] or ("0" if way == "<" else "1")), way))
                case "variable":
                    found.append((Segment("variable", token["variable"], False),))
        elif blank := _BLANKS.match(script, at):
            at = blank.end()
        elif script.startswith("<<", at):
            raise GrammarError("syntax error: here-documents are not part of a virtual phone's shell")
        elif script.startswith("((", at):
            raise GrammarError("syntax error: '(( ))' is not part of a virtual phone's shell")
        else:
            word, at = _word(script, at)
            found.append(word)
    return found


def _word(script: str, at: int) -> tuple[Word, int]:
    segments: list[Segment] = []
    while at < len(script) and script[at] not in " \t\n;&|()<>":
        if script[at] == "'":
            end = script.find("'", at + 1)
            if end < 0:
                raise GrammarError("syntax error: unexpected end of file: no closing quote")
            segments.append(Segment("text", script[at + 1 : end], quoted=True))
            at = end + 1
        elif script[at] == '"':
            at = _double_quoted(script, at + 1, segments)
        else:
            at = _piece(script, at, segments, quoted=False)
    return tuple(segments), at


def _double_quoted(script: str, at: int, segments: list[Segment]) -> int:
    segments.append(Segment("text", "", quoted=True))
    while at < len(script) and script[at] != '"':
        at = _piece(script, at, segments, quoted=True)
    if at >= len(script):
        raise GrammarError("syntax error: unexpected end of file: no closing quote")
    return at + 1


def _piece(script: str, at: int, segments: list[Segment], *, quoted: bool) -> int:
    """One escape, expansion or run of plain characters; the position behind it."""
    if plain := _PLAIN[quoted].match(script, at):
        segments.append(Segment("text", plain[0], quoted))
        return plain.end()
    if script[at] == "\\" and at + 1 < len(script):
        escaped = script[at + 1]
        keeps_backslash = quoted and escaped not in '"\\$`\n'
        text = "\\" + escaped if keeps_backslash else "" if escaped == "\n" else escaped
        segments.append(Segment("text", text, quoted=True))
        return at + 2
    if script[at] == "`":
        raise GrammarError("syntax error: use $( ) instead of back quotes on a virtual phone")
    if script[at] == "$":
        return _expansion(script, at, segments, quoted=quoted)
    segments.append(Segment("text", script[at], quoted=quoted))
    return at + 1


def _expansion(script: str, at: int, segments: list[Segment], *, quoted: bool) -> int:
    if script.startswith("$((", at) or _PARAMETER.match(script, at):
        what = "$(( ))" if script.startswith("$((", at) else script[at : at + 2]
        raise GrammarError(f"syntax error: '{what}' is not part of a virtual phone's shell")
    if script.startswith("$(", at):
        end = _closing(script, at + 2)
        segments.append(Segment("substitution", script[at + 2 : end], quoted))
        return end + 1
    if script.startswith("${", at):
        end = script.find("}", at)
        name = script[at + 2 : max(end, 0)]
        if _OPERATED.match(name):
            raise GrammarError(f"syntax error: '${{{name}}}' is not part of a virtual phone's shell: only ${{NAME}} is")
        if not _NAME.fullmatch(name):
            raise GrammarError("bad substitution")
        segments.append(Segment("variable", script[at + 2 : end], quoted))
        return end + 1
    if match := _VARIABLE.match(script, at + 1):
        segments.append(Segment("variable", match[0], quoted))
        return match.end()
    segments.append(Segment("text", "$", quoted))
    return at + 1


def _closing(script: str, at: int) -> int:
    """Position of the parenthesis that closes `$(`, quotes respected."""
    depth, quote = 1, ""
    while at < len(script):
        character = script[at]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
        if depth == 0:
            return at
        at += 1
    raise GrammarError("syntax error: unexpected end of file: no closing parenthesis")
