"""What every registry of named algorithms does: take the asked one where it fits, refuse what fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from kernels.errors import OptionError
from kernels.options import Choice, Limits, Options

S = TypeVar("S", contravariant=True)


class Named(Protocol[S]):
    """One way to compute an operation of sizes S."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def why_not(self, sizes: S, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        ...

    def tiles(self, sizes: S, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the first is the default; none where it does not fit."""
        ...


class Untiled(Generic[S]):
    """An algorithm that has no tiles and fits everything, unless it says otherwise."""

    def why_not(self, sizes: S, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does."""
        del sizes, options, limits
        return "it has no tiles" if tile else None

    def tiles(self, sizes: S, options: Options, limits: Limits) -> Sequence[str]:
        """The empty word, where it fits."""
        return [""] if self.why_not(sizes, options, limits) is None else []


def asked_or_tuned(
    registry: Mapping[str, Named[S]], asked: str, keys: Sequence[str], sizes: S, options: Options, limits: Limits
) -> Choice | None:
    """The asked one where it fits, with `auto` the tuned one (by the first key that is known); None: the default."""
    choice: Choice | None = Choice.of(asked)
    if asked == "auto":
        choice = next((options.tuned[key] for key in keys if key in options.tuned), None)
    return choice if choice and _fits(registry, choice, sizes, options, limits) else None


def check_asked(
    registry: Mapping[str, Named[S]], option: str, asked: str, cases: Sequence[tuple[str, S]], options: Options,
    limits: Limits,
) -> None:  # fmt: skip
    """Raise OptionError where `asked` is unknown or fits none of the (layer, sizes) cases; name those that fit."""
    if asked == "auto":
        return
    fitting = [
        name
        for name, entry in registry.items()
        if any(entry.why_not(sizes, options, limits) is None for _, sizes in cases)
    ]
    allowed = ", ".join(["auto", *fitting])
    choice = Choice.of(asked)
    if choice.algorithm not in registry:
        raise OptionError(f"{option} {asked!r} is not known; this network can use: {allowed}")
    if not any(_fits(registry, choice, sizes, options, limits) for _, sizes in cases):
        entry = registry[choice.algorithm]
        reasons = [f"{layer}: {entry.why_not(sizes, options, limits, choice.tile)}" for layer, sizes in cases[:3]]
        why = f" ({'; '.join(reasons)})" if reasons else ""
        raise OptionError(
            f"{option} {asked!r} ({entry.summary}) fits nowhere in this network{why}; it can use: {allowed}"
        )


def _fits(registry: Mapping[str, Named[S]], choice: Choice, sizes: S, options: Options, limits: Limits) -> bool:
    entry = registry.get(choice.algorithm)
    return entry is not None and entry.why_not(sizes, options, limits, choice.tile) is None
