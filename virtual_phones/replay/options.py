"""The agent's command line, divided between the stand-in and the real agent."""

from __future__ import annotations

OWN = {
    "--journal": "", "--warmup": "0", "--samples": "1", "--idle-ms": "0", "--load-ms": "0", "--warmup-stable": "0",
    "--power-period-ms": "0", "--await-discharging-ms": "0", "--deadline-s": "600",
    "--inferences": "1",
}  # fmt: skip
"""Options that this program takes upon itself, with the agent's defaults."""


def split(words: list[str]) -> tuple[dict[str, str], list[str], bool]:
    """Our own options, those of the real agent, and whether to detach."""
    own, rest, is_detached = dict(OWN), [], False
    left = iter(words)
    for word in left:
        if word == "--detach":
            is_detached = True
        elif word in OWN:
            own[word] = next(left, "")
        else:
            rest.append(word)
    return own, rest, is_detached
