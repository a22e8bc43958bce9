"""Run a command on a phone of this host for a person, while no session has it."""

from __future__ import annotations

import base64
from collections.abc import Callable

from redis import Redis

from orchestrator.coordination.tasks.by_hand import Answer, Question, answer, take
from orchestrator.model.errors import FarmError
from orchestrator.system.config import Settings
from workers.connection.adb import server_of
from workers.devices.device_lock import device_lock
from workers.devices.lookup import find_phone
from workers.session.owner import claimant_of, keeper_of, refuse

LOCK_WAIT_S = 2.0


def answer_by_hand(settings: Settings, redis: Redis, name: str, is_over: Callable[[], bool] = lambda: False) -> None:
    """Take a question to this host, and answer it; a command is ended as soon as it `is_over`.

    Raises ServiceDown where Redis is away.
    """
    if (question := take(redis, settings.host, name)) is not None:
        answer(redis, settings.host, name, run_by_hand(settings, question, is_over))


def run_by_hand(settings: Settings, question: Question, is_over: Callable[[], bool] = lambda: False) -> Answer:
    """Run it; no session begins meanwhile. An answer says what stood in the way."""
    serial = question.serial
    try:
        with device_lock(settings.state, serial, wait_s=LOCK_WAIT_S):
            connection = find_phone(serial, server_of(settings))
            if keeper := keeper_of(connection, claimant_of(settings.state, settings.host)):
                raise refuse(connection, keeper)
            done, why = connection.shell_part(question.argv, question.deadline_s, question.most_bytes, is_over)
    except FarmError as e:
        return Answer.of_error(e)
    out, err = (base64.b64encode(each).decode() for each in (done.stdout, done.stderr))
    return Answer(code=None if why else done.code, out=out, err=err, why=why)
