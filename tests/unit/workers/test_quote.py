"""Whatever the arguments hold, a real shell gives them back."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.connection.quote import quote

ANY = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=40)


@settings(max_examples=40, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=5))
def test_a_shell_sees_the_same_arguments(arguments: list[str]) -> None:
    done = subprocess.run(["/bin/sh", "-c", quote(["printf", "%s\\0", *arguments])], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == arguments


@pytest.mark.parametrize("argv", [[], ["a\0b"]])
def test_what_no_command_can_be(argv: list[str]) -> None:
    with pytest.raises(ValueError, match=r"empty|NUL"):
        quote(argv)
