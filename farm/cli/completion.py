"""Complete experiments, devices and networks in the shell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

from farm.access import LATEST


def experiments(context: typer.Context, incomplete: str) -> list[str]:
    """Names and ids of the ledger, the newest first; names alone until one is written out."""
    from farm.access import open_ledger

    with _quiet(), open_ledger(_settings(context)) as ledger:
        rows = list(reversed(ledger.experiments()))
        names = [LATEST, *dict.fromkeys(row.experiment.name for row in rows)]
        return _starting(names, incomplete) or _starting([row.id for row in rows], incomplete)
    return []


def serials(context: typer.Context, incomplete: str) -> list[str]:
    """Devices of the running farm, or those whose profile is stored."""
    from farm.access import open_inventory
    from workers.enrolment import store

    with _quiet():
        settings = _settings(context)
        if settings.redis_url:
            return _starting((device.serial for device in open_inventory(settings).devices()), incomplete)
        return _starting(store.serials(settings.state), incomplete)
    return []


def networks(incomplete: str) -> list[str]:
    """Built-in networks and operations."""
    from kernels.frontend.networks import BUILT_IN

    return _starting(BUILT_IN, incomplete)


def _settings(context: typer.Context) -> Any:
    from farm.access import settings_of

    return settings_of(context.params.get("state"))


def _starting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


@contextmanager
def _quiet() -> Iterator[None]:
    """A shell that asks has no place for an error."""
    from orchestrator.model.errors import FarmError

    with suppress(FarmError):
        yield
