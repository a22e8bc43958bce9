"""The home of a training's variables, which takes their steps: the device, or the host beside it."""

from __future__ import annotations

from kernels.lower.draft import Draft
from kernels.plan.model import Transfer

from .machine import CpuMachine, Machine


class Home:
    """The device: its kernels read and change every variable where it lies."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        """Writes the steps that change variables."""

    def lend(self, variable: str) -> str:
        """A variable as the device's kernels read it in this pass."""
        return variable

    def collect(self, result: str) -> str:
        """Return what the device's kernels wrote, as the steps that change variables read it."""
        return result


class Host(Home):
    """The CPU backend (study A): a pass begins with transfers of the variables that the device reads, and ends with
    those of its gradients and losses, and the steps on the host. Nothing lasts on the device but the data."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(CpuMachine(draft, "cpu"))
        self._draft = draft
        self._lent: dict[str, str] = {}

    def lend(self, variable: str) -> str:
        """See `Home`; a copy, the same one in every stage."""
        if variable not in self._lent:
            held = self._draft.buffers[variable]
            self._lent[variable] = self._draft.add_buffer(f"{variable}:lent", held.size, "activation", held.tensor)
            self._draft.share(self._lent[variable])
        return self._transfer(variable, self._lent[variable])

    def collect(self, result: str) -> str:
        """See `Home`; a copy."""
        held = self._draft.buffers[result]
        self._draft.share(result)
        target = self._draft.add_buffer(f"{result}:collected", held.size, "activation", held.tensor, side="cpu")
        return self._transfer(result, target)

    def _transfer(self, source: str, target: str) -> str:
        size = self._draft.buffers[source].size
        self._draft.steps.append(Transfer(layer=source, source=source, target=target, bytes=size))
        return target
