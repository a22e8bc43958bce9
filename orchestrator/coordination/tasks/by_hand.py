"""A command for a phone, by hand: the question on its way to the phone's host, and the answer on its way back.

The question lies in Redis under its host's name, and a task names it. Who deletes it has it: so it is run at most once,
and never late, whatever the clocks say. Celery's events have no word of it.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import time

from pydantic import Field, ValidationError
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination import keys
from orchestrator.coordination.client import is_wrong_type, translated
from orchestrator.model.base import Model
from orchestrator.model.errors import (
    DeviceBusy,
    DeviceSick,
    FarmError,
    ServiceDown,
    TransportLost,
    Unsupported,
)
from orchestrator.system.config import Settings

from .queue import make_app, send_question

PROTOCOL = 11
"""The first protocol of hosts whose workers take such questions."""
DEADLINE_S = 20.0
MOST_BYTES = 32 << 20
"""The most bytes that a command may print: a picture of a large screen."""
TAKEN_S, ON_THE_WAY_S = 5.0, 15.0
"""The time in which a host takes a question, and the time that finding the phone and bringing the answer take beside
the command. All three are less than the 60 s for which a client waits."""
LOOK_S = 0.05
_ANSWER_BYTES = MOST_BYTES // 3 * 4 + 8192
_FAULTS = {each.cause: each for each in (DeviceBusy, DeviceSick, Unsupported, TransportLost)}


class Question(Model):
    """A command for a phone of one host."""

    serial: str
    argv: tuple[str, ...]
    deadline_s: float = Field(gt=0, le=DEADLINE_S)
    most_bytes: int = Field(gt=0, le=MOST_BYTES)


class Answer(Model):
    """The answer to a question, as its host says."""

    code: int | None = Field(None, ge=0, le=255)
    """Exit status; None: it has none, since `why` ended it."""
    out: str = ""
    """The output, base64."""
    err: str = Field("", max_length=1 << 21)
    """The same of errors."""
    why: str = Field("", max_length=1000)
    fault: str = Field("", max_length=100)
    """The cause of the error that kept it from running or cut it off; empty: there was none."""
    remedy: str | None = Field(None, max_length=1000)

    @classmethod
    def of_error(cls, error: FarmError) -> Answer:
        """Return an error as it travels."""
        cause = next((cause for cause, kind in _FAULTS.items() if isinstance(error, kind)), TransportLost.cause)
        return cls(why=str(error.args[0])[:1000], fault=cause, remedy=(error.remedy or "")[:1000] or None)

    @property
    def printed(self) -> tuple[bytes, bytes]:
        """Output and errors. Raises ValueError."""
        return base64.b64decode(self.out, validate=True), base64.b64decode(self.err, validate=True)


@translated
def ask(redis: Redis, farm: Settings, host: str, question: Question) -> Answer:
    """Have a host run a command on its phone, and wait for the answer.

    Raises ServiceDown where the host does not take it or Redis is away: nothing was run. Raises what the host says
    stood in the way. An answer that does not come, or is none, is one without an exit status, which says so.
    """
    name = secrets.token_hex(16)
    asked, answered = keys.asked(host, name), keys.answer(host, name)
    redis.set(asked, question.model_dump_json(), px=round(2000 * TAKEN_S))
    with make_app(farm) as app:
        send_question(host, name, by=app)
    end = time.monotonic() + TAKEN_S
    while redis.exists(asked):
        if time.monotonic() > end and redis.delete(asked):
            what = f"host {host} did not take it within {TAKEN_S:g} s, and nothing was run"
            raise ServiceDown(what, remedy="its sessions may all be under way, or its worker is away: `farm host list`")
        time.sleep(LOOK_S)
    end = time.monotonic() + question.deadline_s + ON_THE_WAY_S
    while time.monotonic() < end:
        if text := _read(redis, answered):
            redis.unlink(answered)
            return _parsed(text, host, question)
        time.sleep(LOOK_S)
    return Answer(why=f"host {host} has begun it, and no answer came: whether it ran to its end is not known")


def _read(redis: Redis, key: str) -> str:
    try:
        return str(redis.getrange(key, 0, _ANSWER_BYTES))
    except RedisError as e:
        if not is_wrong_type(e):
            raise
        return "a key of another type"


def _parsed(text: str, host: str, question: Question) -> Answer:
    """Return an answer of a host that may lie: bounded, and of the form that it should have. Raises FarmError."""
    try:
        said = Answer.model_validate_json(text, extra="ignore")
        if sum(map(len, said.printed)) > question.most_bytes:
            raise ValueError("it is longer than was asked for")
    except (ValidationError, binascii.Error, ValueError, RecursionError):
        return Answer(why=f"host {host} has begun it, and its answer cannot be read")
    if said.fault:
        raise _FAULTS.get(said.fault, TransportLost)(said.why, device=question.serial, remedy=said.remedy)
    return said


@translated
def take(redis: Redis, host: str, name: str) -> Question | None:
    """Return a question to this host, once; None where it is over, or is none."""
    text = redis.get(keys.asked(host, name))
    if not text or not redis.delete(keys.asked(host, name)):
        return None
    try:
        return Question.model_validate_json(text)
    except ValidationError:
        return None


@translated
def answer(redis: Redis, host: str, name: str, said: Answer) -> None:
    """Leave the answer for who asked."""
    redis.set(keys.answer(host, name), said.model_dump_json(), px=round(2000 * ON_THE_WAY_S))
