"""Tell whoever a suite names how its night went: by mail, chat or webhook, with the morning report.

An address is what Apprise reads (https://github.com/caronc/apprise/wiki): `mailtos://user:password@host?to=team@host`,
`slack://...`, `json://host/path`. An address that is a plain name is looked up in the setting FARM_TELL.
"""

from __future__ import annotations

import logging
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError
from orchestrator.nightly import Night, Told
from orchestrator.nightly.past import nights_of, of_suite

from .markdown import morning_markdown
from .morning import Morning, headline, morning
from .page import morning_page

log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def morning_of(ledger: Ledger, night: Night) -> Morning:
    """The morning report of a night, with the nights before it."""
    earlier = [each for each in nights_of(ledger, night.suite.name) if each.due_at < night.due_at]
    return morning(night, of_suite(ledger, night.suite.name, [*earlier, night]))


def teller(ledger: Ledger, known: Mapping[str, str]) -> Callable[[Night], tuple[Told, ...]]:
    """Return a function that tells a night to all that its suite names. `known`: addresses by name."""
    return lambda night: tell(morning_of(ledger, night), night.suite.tell, known) if night.suite.tell else ()


def tell(found: Morning, to: tuple[str, ...], known: Mapping[str, str]) -> tuple[Told, ...]:
    """One attempt for each; what went wrong stands in the answer, without secrets, and stops no other."""
    if not to:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, f"{re.sub(r'[^A-Za-z0-9_-]', '-', found.night.night_id)}.html")
        page.write_text(morning_page(found))
        message = {
            "title": f"{found.night.suite.name}: {headline(found)}",
            "body": morning_markdown(found),
            "body_format": "markdown",
            "notify_type": _kind(found),
        }
        return tuple(_told(each, known, message, page) for each in to)


def _kind(found: Morning) -> str:
    if found.rows["worse"]:
        return "failure"
    return "success" if found.night.outcome == "complete" else "warning"


def check_addresses(to: Sequence[str], known: Mapping[str, str]) -> None:
    """Raises SpecError with every one that nobody could be told at."""
    if wrong := [
        f"{service.name}: {service.error}" for service in (_service(each, known) for each in to) if service.error
    ]:
        raise SpecError(
            f"`tell` names what is no address: {'; '.join(wrong)}",
            remedy="mend `tell` in the suite, or FARM_TELL in the environment of `farm up` and of this command",
        )


def send_test(suite: str, to: Sequence[str], known: Mapping[str, str]) -> tuple[Told, ...]:
    """Send a message that says that it is a test; as `tell`."""
    body = f"A test: this is where the nights of `{suite}` will be told."
    message = {"title": f"{suite}: a test", "body": body, "body_format": "markdown", "notify_type": "info"}
    return tuple(_told(each, known, message, None) for each in to)


class _Service(NamedTuple):
    """A service behind an address; `name` is without secrets."""

    name: str
    service: Any = None
    error: str = ""


def _service(to: str, known: Mapping[str, str]) -> _Service:
    from apprise import Apprise

    if _NAME.fullmatch(to) and to not in known:
        return _Service(to, error=f"{to!r} is not in FARM_TELL ({', '.join(sorted(known)) or 'it is empty'})")
    service = Apprise.instantiate(known.get(to, to), suppress_exceptions=True)
    name = to if _NAME.fullmatch(to) else _without_secrets(service, to)
    wanted = "it is no address: write e.g. mailtos://USER:PASSWORD@HOST?to=TEAM@HOST or json://HOST/PATH"
    return _Service(name, service, "" if service is not None else wanted)


def _told(to: str, known: Mapping[str, str], message: Mapping[str, Any], page: Path | None) -> Told:
    from apprise import Apprise

    name, service, error = _service(to, known)
    if error:
        return _answer(name, error)
    everybody = Apprise()
    everybody.add(service)
    said = _Said()
    logger = logging.getLogger("apprise")
    logger.addHandler(said)
    try:
        attach = str(page) if page is not None and service.attachment_support else None
        arrived = everybody.notify(**message, attach=attach)
    except Exception as e:  # a service of a library: whatever it raises, the others are still told
        return _answer(name, f"{type(e).__name__}: {e}")
    finally:
        logger.removeHandler(said)
    return _answer(name, "" if arrived else said.text or "the service did not take it")


class _Said(logging.Handler):
    """The warnings of Apprise while it sent."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING and not self.text:
            self.text = record.getMessage()


def _without_secrets(service: Any, to: str) -> str:
    return str(service.url(privacy=True)).partition("?")[0] if service is not None else f"{to.partition(':')[0]}:..."


def _answer(to: str, error: str) -> Told:
    if error:
        log.warning("event=not_told to=%s error=%s", to, error.replace(" ", "_"))
    return Told(to=to, at=time.time(), error=error)
