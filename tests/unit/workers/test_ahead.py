"""Answers that were asked for ahead are given once, and only as long as nothing can have changed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.connection.ahead import Ahead

from .scripted import ScriptedPhone

A, B, C = ["cat", "a"], ["cat", "b"], ["cat", "c"]


@pytest.fixture
def phone() -> ScriptedPhone:
    return ScriptedPhone({"cat a": "1", "cat b": "2", "cat c": "3"})


def test_an_answer_is_given_once(phone: ScriptedPhone) -> None:
    ahead = Ahead(phone)
    ahead.ask([A, B, C])
    assert [ahead.shell(B).stdout, *(told.stdout for told in ahead.shells([A, C]))] == [b"2", b"1", b"3"]
    assert phone.asked == ["cat a", "cat b", "cat c"]
    assert ahead.shell(B).stdout == b"2" and phone.asked[3:] == ["cat b"]


@pytest.mark.parametrize("other", ["shell", "shells", "partly", "push"])
def test_whatever_else_is_done_forgets_the_rest(phone: ScriptedPhone, other: str) -> None:
    ahead = Ahead(phone)
    ahead.ask([A, B])
    match other:
        case "shell":
            ahead.shell(["settings", "put", "a"])
        case "shells":
            ahead.shells([["settings", "put", "a"]])
        case "partly":
            ahead.shells([B, C])
        case "push":
            ahead.push(Path("x"), "a")
    phone.answers["cat a"] = "new"
    assert ahead.shell(A).stdout == b"new"


@pytest.mark.parametrize("succeeds", [True, False])
def test_answers_behind_a_guard_are_kept(phone: ScriptedPhone, succeeds: bool) -> None:
    ahead = Ahead(phone)
    ahead.ask([B])
    told = ahead.shells([A, B if succeeds else ["none"], B, C], guard=1)
    assert told[0].stdout == b"1" and len(told) == (4 if succeeds else 1)
    assert ahead.has([B, C]) == ahead.has([B]) == succeeds
    phone.answers |= {"cat b": "new", "cat c": "new"}
    assert [each.stdout for each in ahead.shells([B, C])] == ([b"2", b"3"] if succeeds else [b"new"] * 2)


@pytest.mark.parametrize("way", ["shell", "shells", "guard", "ask", "settle"])
def test_what_is_deferred_goes_in_front_of_what_is_asked_next(phone: ScriptedPhone, way: str) -> None:
    ahead = Ahead(phone)
    ahead.ask([B])
    ahead.defer([["rm", "x"]])
    assert ahead.shell(B).stdout == b"2" and phone.asked == ["cat b"], "an answer that is known is no trip"
    match way:
        case "shell":
            assert ahead.shell(A).stdout == b"1"
        case "shells":
            assert [each.stdout for each in ahead.shells([A, C])] == [b"1", b"3"]
        case "guard":
            assert ahead.shells([A, C, B], guard=1)[0].stdout == b"1" and ahead.has([B])
        case "ask":
            ahead.ask([A])
            assert ahead.shell(A).stdout == b"1"
        case "settle":
            ahead.settle()
    ahead.settle()
    assert phone.asked[1] == "rm x" and phone.asked.count("rm x") == 1
