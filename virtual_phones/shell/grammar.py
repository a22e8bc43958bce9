"""Grammar of the shell commands that a virtual phone understands: a small part of mksh's.

    list     := chain ((";" | "&" | newline) chain)*
    chain    := pipeline (("&&" | "||") pipeline)*
    pipeline := ["!"] command ("|" command)*
    command  := ("(" list ")" | "{" list "}" | NAME=WORD* WORD*) redirection*

Words know single and double quotes, backslash, `$NAME`, `${NAME}`, `$?`, `$$` and `$(list)`. Control flow (`if`, `for`,
`while`, `case`, functions, here-documents), arithmetic and parameters (`$1`, `$!`, `${a:-b}`) are refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from .words import GrammarError, Segment, Token, Word, tokens

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_REFUSED = frozenset(
    ("if", "then", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select", "[[")
)


@dataclass(frozen=True, slots=True)
class Redirection:
    """`descriptor` 0 to 2 (or -1: 1 and 2) to or from a file, or for `>&` to another descriptor."""

    descriptor: int
    operator: Literal[">", ">>", "<", ">&"]
    target: Word


@dataclass(slots=True)
class Command:
    """A simple command, or a group where `group` is not None."""

    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    group: list[Chain] | None = None


@dataclass(slots=True)
class Pipeline:
    commands: list[Command]
    negated: bool = False


@dataclass(slots=True)
class Chain:
    """`first`, then each pipeline where its operator agrees with the status so far."""

    first: Pipeline
    rest: list[tuple[Literal["&&", "||"], Pipeline]] = field(default_factory=list)
    background: bool = False


def parse(script: str) -> list[Chain]:
    """Parse a script. Raises GrammarError."""
    parser = _Parser(tokens(script))
    try:
        chains = parser.chains(end=None)
    except RecursionError as error:
        raise GrammarError("syntax error: groups too deep") from error
    parser.expect_end()
    return chains


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens: list[Token | None] = [*tokens, None]
        """`None`: the end."""
        self._at = 0

    def _peek(self) -> Token | None:
        return self._tokens[self._at]

    def _take(self, *operators: str) -> str | None:
        token = self._tokens[self._at]
        if isinstance(token, str) and token in operators:
            self._at += 1
            return token
        return None

    def expect_end(self) -> None:
        if (token := self._peek()) is not None:
            raise GrammarError(f"syntax error: unexpected '{_spelling(token)}'")

    def chains(self, end: str | None) -> list[Chain]:
        chains: list[Chain] = []
        while True:
            while self._take(";", "\n"):
                pass
            token = self._peek()
            if token is None or (isinstance(token, str) and token == end) or (end == "}" and _plain(token) == "}"):
                return chains
            chain = self._chain()
            chain.background = bool(self._take("&"))
            chains.append(chain)
            following = self._peek()
            if not chain.background and following is not None and following not in (";", "\n") and following != end:
                if end == "}" and _plain(following) == "}":
                    return chains
                raise GrammarError(f"syntax error: unexpected '{_spelling(following)}'")

    def _chain(self) -> Chain:
        chain = Chain(self._pipeline())
        while operator := self._take("&&", "||"):
            while self._take("\n"):
                pass
            chain.rest.append(("&&" if operator == "&&" else "||", self._pipeline()))
        return chain

    def _pipeline(self) -> Pipeline:
        negated = _plain(self._peek()) == "!"
        self._at += negated
        commands = [self._command()]
        while self._take("|"):
            commands.append(self._command())
        return Pipeline(commands, negated)

    def _command(self) -> Command:
        command = Command()
        if self._take("("):
            command.group = self._group(")")
        elif _plain(self._peek()) == "{":
            self._at += 1
            command.group = self._group("}")
        start = self._at
        while (token := self._tokens[self._at]) is not None and not isinstance(token, str):
            self._at += 1
            if isinstance(token[0], int):
                command.redirections.append(self._redirection(token))
            elif command.group is not None:
                raise GrammarError(f"syntax error: unexpected '{_spelling(token)}'")
            else:
                self._add_word(command, token)
        if self._at == start and command.group is None:
            what = "end of file" if token is None else f"'{_spelling(token)}'"
            raise GrammarError(f"syntax error: unexpected {what}")
        return command

    def _group(self, end: str) -> list[Chain]:
        chains = self.chains(end)
        if self._peek() is None:
            raise GrammarError(f"syntax error: unexpected end of file: '{end}' expected")
        self._at += 1
        return chains

    def _redirection(self, token: tuple[int, str]) -> Redirection:
        target = self._peek()
        if target is None or isinstance(target, str) or isinstance(target[0], int):
            raise GrammarError("syntax error: a file name is expected behind a redirection")
        self._at += 1
        return Redirection(token[0], token[1], target)  # type: ignore[arg-type]

    def _add_word(self, command: Command, word: Word) -> None:
        if command.words:
            command.words.append(word)
            return
        head = word[0].text if word and not word[0].quoted else ""
        spelled = _spelling(word)
        if (match := _ASSIGNMENT.match(spelled)) and head:
            command.assignments.append((match[0][:-1], _without_prefix(word, match.end())))
            return
        if _plain(word) in _REFUSED:
            raise GrammarError(f"syntax error: '{spelled}' is not part of a virtual phone's shell")
        command.words.append(word)


def _without_prefix(word: Word, length: int) -> Word:
    rest = list(word)
    while length:
        head = rest.pop(0)
        if len(head.text) > length:
            rest.insert(0, Segment(head.kind, head.text[length:], head.quoted))
        length -= min(length, len(head.text))
    return tuple(rest)


def _plain(token: Token | None) -> str | None:
    """Text of a word without quotes and expansions; None for anything else."""
    if type(token) is tuple and len(token) == 1:
        segment = token[0]
        return segment.text if segment.kind == "text" and not segment.quoted else None
    if token is None or isinstance(token, str) or any(isinstance(part, int | str) for part in token):
        return None
    segments = [part for part in token if isinstance(part, Segment)]
    if any(segment.quoted or segment.kind != "text" for segment in segments):
        return None
    return "".join(segment.text for segment in segments)


def _spelling(token: Token) -> str:
    if isinstance(token, str):
        return token.replace("\n", "newline")
    return "".join(part.text if isinstance(part, Segment) else str(part) for part in token)
