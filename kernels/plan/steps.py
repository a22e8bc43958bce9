"""Effects of steps, of a plan or of a draft, on buffers: what each reads and writes, and how long content lives.

Validation, memory layout, swapping, waves, the account of moves and the figures of a plan all ask here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .model import BufferArgument, Copy, Dispatch, Parameter, PartArgument, Step, SwapIn, SwapOut, Transfer

Parameters = Mapping[str, Sequence[Parameter]]
"""Program -> what it takes, in order."""

LASTING = frozenset({"weight", "input", "output", "variable", "data"})
"""Roles of buffers that live throughout: a plan is run many times after one upload."""
_ALL = 1 << 63


@dataclass(frozen=True)
class Access:
    """Bytes of a buffer that a step reads, writes, or both."""

    buffer: str
    reads: bool
    writes: bool
    begin: int = 0
    end: int = _ALL
    """The byte after the last; by default those of the whole buffer."""


class Touches:
    """The highest marks of what wrote, and of what touched, each run of one buffer's bytes so far."""

    def __init__(self) -> None:
        self._begins, self._wrote, self._touched = [0], [-1], [-1]

    def latest(self, access: Access) -> int:
        """Return the highest mark whose order beside an access matters, because one of both writes; -1: none."""
        return max((self._touched if access.writes else self._wrote)[self._runs(access)], default=-1)

    def add(self, access: Access, mark: int) -> None:
        runs = self._runs(access)
        for marks in (self._touched, self._wrote) if access.writes else (self._touched,):
            marks[runs] = [max(mark, each) for each in marks[runs]]

    def _runs(self, access: Access) -> slice:
        """The runs that are an access's bytes; those at its ends are cut there."""
        places = []
        for at in (access.begin, access.end):
            places.append(place := bisect_left(self._begins, at))
            if self._begins[place : place + 1] != [at]:
                for each in (self._wrote, self._touched):
                    each.insert(place, each[place - 1])
                self._begins.insert(place, at)
        return slice(*places)


@dataclass(frozen=True)
class Span:
    """Steps, or waves of steps, first to last inclusive, during which a buffer's content matters."""

    first: int
    last: int

    def meets(self, other: Span) -> bool:
        return self.first <= other.last and other.first <= self.last


def touched(step: Step) -> list[str]:
    """Buffers that a step reads or writes, in the order in which it names them."""
    if isinstance(step, Dispatch):
        return [argument.buffer for argument in step.arguments if isinstance(argument, BufferArgument)]
    return [step.source, step.target] if isinstance(step, Copy | Transfer) else [step.buffer]


def accesses(step: Step, parameters: Parameters) -> Iterator[Access]:
    """Yield the accesses of a step. Raises KeyError where the parameters of its program are not given."""
    if isinstance(step, Dispatch):
        for parameter, argument in zip(parameters[step.program], step.arguments, strict=True):
            if isinstance(argument, BufferArgument):
                part = argument.part if isinstance(argument, PartArgument) else (0, _ALL)
                yield Access(argument.buffer, parameter.access != "write", parameter.access != "read", *part)
    elif isinstance(step, Copy):
        yield Access(step.source, True, False, step.source_offset, step.source_offset + step.bytes)
        yield Access(step.target, False, True, step.target_offset, step.target_offset + step.bytes)
    elif isinstance(step, Transfer):
        yield Access(step.source, True, False, 0, step.bytes)
        yield Access(step.target, False, True, 0, step.bytes)
    else:
        yield Access(step.buffer, isinstance(step, SwapOut), isinstance(step, SwapIn))


def renamed(step: Step, name: Callable[[str], str], program: Callable[[str], str]) -> Step:
    """The step with other names of its buffers and its program."""
    if isinstance(step, Dispatch):
        arguments = tuple(
            each.model_copy(update={"buffer": name(each.buffer)}) if isinstance(each, BufferArgument) else each
            for each in step.arguments
        )
        return step.model_copy(update={"program": program(step.program), "arguments": arguments})
    if isinstance(step, SwapIn | SwapOut):
        host = name(step.host) if step.host else None
        return step.model_copy(update={"buffer": name(step.buffer), "host": host})
    return step.model_copy(update={"source": name(step.source), "target": name(step.target)})


def read(step: Step, parameters: Parameters) -> list[str]:
    """Buffers that a step reads."""
    return [access.buffer for access in accesses(step, parameters) if access.reads]


def written(step: Step, parameters: Parameters) -> list[str]:
    """Buffers that a step writes."""
    return [access.buffer for access in accesses(step, parameters) if access.writes]


def lifetimes(steps: Sequence[Step], roles: Mapping[str, str], waves: Sequence[int] = ()) -> dict[str, list[Span]]:
    """Buffer -> spans in which it holds content, in order; of every buffer that a step touches or that is `LASTING`.

    A swap-out ends a span, and a swap-in begins another. `roles`: of every buffer. `waves`: of each step, where those
    of one run in any order; then spans count waves, else steps.
    """
    times = waves or range(len(steps))
    spans: dict[str, list[list[int]]] = {}
    ended: set[str] = set()
    for time, step in zip(times, steps, strict=True):
        if isinstance(step, SwapIn):
            ended.add(step.buffer)
        for name in touched(step):
            own = spans.setdefault(name, [])
            if not own or name in ended:
                own.append([time, time])
                ended.discard(name)
            else:
                own[-1][1] = time
        if isinstance(step, SwapOut):
            ended.add(step.buffer)
    throughout = [Span(0, max(times, default=0))]
    held = {name: [Span(*each) for each in own] for name, own in spans.items()}
    return held | {name: throughout for name, role in roles.items() if role in LASTING}
