"""Doubts about results of programs of one's own."""

from __future__ import annotations

DOUBTS = {
    "unchecked": "let the program check its result and exit with another status than 0 where it is wrong",
    "whole_process": "print each sample when it ends, and flush: until then energy and power are the whole program's",
}
