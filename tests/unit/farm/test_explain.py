"""Every word of the glossary is explained, in whatever form it is asked for."""

from __future__ import annotations

import json
import random

from orchestrator.answers.glossary import glossary

from .conftest import Run


def test_words_are_found_as_people_write_them(farm: Run, seed: int) -> None:
    known, chosen = glossary(), random.Random(seed)
    assert {"canary", "doubt", "gross", "net", "settled", "detects"} <= known.keys()
    for word in chosen.sample(sorted(known), 8):
        form = chosen.choice([word, word.upper(), word.replace("-", " "), f"{word}s"])
        code, out, _ = farm("explain", *form.split(), "--json")
        assert code == 0 and json.loads(out) == {word: known[word]}, form
        assert not any(mark in known[word] for mark in ("](", "**", "`"))
    code, _, err = farm("explain", "canari")
    assert code == 1 and "did you mean canary" in err
    assert farm("explain", "canaries")[1].startswith("canary: ")
