"""Faults that once were found stay mended, and every reader gets some thousands of new random inputs."""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path

import pytest

from .boundaries import BOUNDARIES, Boundary
from .mutations import mutate

CORPUS = Path(__file__).parent / "corpus"
SLOWEST_S = 20.0
"""Processor time: an input of 64 KiB that takes more is a way to stop the farm; what is usual is a thousandth of it."""


def play(boundary: Boundary, data: bytes) -> None:
    """Raises whatever is not a refusal."""
    began = time.process_time()
    with contextlib.suppress(*boundary.refuses):
        boundary.read(data)
    assert time.process_time() - began < SLOWEST_S, "too slow"


@pytest.mark.parametrize("name", BOUNDARIES)
def test_seeds_are_accepted(name: str) -> None:
    """Else what is mutated is refused at the door, and nothing behind it is ever tried."""
    for seed in BOUNDARIES[name].seeds():
        BOUNDARIES[name].read(seed)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_was_a_fault(path: Path) -> None:
    play(BOUNDARIES[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", BOUNDARIES)
def test_random_inputs(name: str, seed: int) -> None:
    boundary, draw = BOUNDARIES[name], random.Random(f"{name} {seed}")
    seeds = boundary.seeds()
    for _ in range(boundary.inputs):
        data = mutate(seeds, draw)
        try:
            play(boundary, data)
        except Exception as e:
            raise AssertionError(f"{type(e).__name__}: {e}; the input: {data!r}") from e
