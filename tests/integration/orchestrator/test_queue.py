"""Tasks through a real Celery worker on a real Redis, over its unix socket."""

from __future__ import annotations

import os
import queue as stdlib_queue
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from celery import Celery, Task
from pydantic import SecretStr
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.tasks import events, queue
from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.config import Settings
from tests.celery_worker import events_of, worker_of
from tests.waiting import eventually

Calls = stdlib_queue.Queue[dict[str, object]]


def placed(token: int, *, device: str = "A", in_line: int = 0) -> queue.Placed:
    return queue.Placed("j", 1, device, token, in_line)


def consumer(app: Celery, calls: Calls) -> Celery:
    @app.task(name=queue.MEASURE, bind=True, shared=False)
    def measure(self: Task, **arguments: object) -> None:
        calls.put({"id": self.request.id, **arguments})

    return app


@pytest.fixture
def calls(farm: Settings, redis: Redis) -> Iterator[Calls]:
    received: Calls = stdlib_queue.Queue()
    with worker_of(consumer(queue.make_app(farm), received), keys.queue("lab"), keys.worker("lab")):
        yield received


def test_a_task_says_what_was_placed(farm: Settings, calls: Calls, redis: Redis) -> None:
    app = queue.make_app(farm)
    queue.send("lab", placed(7, in_line=3), by=app)
    assert calls.get(timeout=60) == {"id": "j-1", "job": "j", "attempt": 1, "device": "A", "token": 7, "in_line": 3}
    queue.send("elsewhere", placed(8, device="B"), by=app)
    assert redis.llen("farm.elsewhere") == 1
    redis.flushall()
    redis.config_resetstat()
    queue.send("lab", placed(9), by=app)
    assert calls.get(timeout=60)["token"] == 9
    asked = {name.removeprefix("cmdstat_") for name in redis.info("commandstats")}
    assert not asked & {"hset", "hdel", "zadd", "zrem"}, f"nobody keeps books of what was not acknowledged: {asked}"


def test_what_was_revoked_does_not_begin(farm: Settings, calls: Calls) -> None:
    app = queue.make_app(farm)

    def is_known() -> bool:
        queue.revoke([queue.task_id("gone", 1)], by=app)  # lost, where nobody listens yet
        return "gone-1" in (app.control.inspect().revoked() or {}).get("farm@lab", ())

    eventually(is_known)
    queue.send("lab", queue.Placed("gone", 1, "A", 7), by=app)
    queue.send("lab", queue.Placed("gone", 2, "A", 8), by=app)
    assert calls.get(timeout=60)["id"] == "gone-2", "the first one is dropped, another attempt is not"
    assert calls.empty()


def test_events_tell_what_runs_and_keep_nothing(farm: Settings, redis: Redis, calls: Calls) -> None:
    app = queue.make_app(farm)
    for token in range(50):
        queue.send("lab", placed(token), by=app)
        calls.get(timeout=60)
    eventually(lambda: {str(key).partition(".")[0] for key in redis.scan_iter()} == {"_kombu"}, what="they are kept")
    with events_of(app) as seen:  # of the last ones before some may still come: they leave after their sessions
        queue.send("lab", queue.Placed("last", 1, "A", 7), by=app)
        eventually(lambda: [each["type"] for each in seen if each.get("uuid") == "last-1"][-1:] == ["task-succeeded"])
        told = next(each for each in seen if each.get("uuid") == "last-1")
    assert (told["type"], told["hostname"], told["name"]) == ("task-received", "farm@lab", "farm.measure")
    assert told["kwargs"] == "device=A, job=last, attempt=1, token=7, in_line=0"


@pytest.mark.parametrize("latest_s", [0.05, 600.0])
def test_events_leave_between_sessions_or_late(
    farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch, latest_s: float
) -> None:
    monkeypatch.setattr(events, "LATEST_S", latest_s)
    app, within = queue.make_app(farm), stdlib_queue.Queue[list[object]]()
    begun, all_of_it = ["task-received", "task-started"], ["task-received", "task-started", "task-succeeded"]
    with events_of(app) as seen:

        def told(attempt: int) -> list[object]:
            return [each["type"] for each in seen if each.get("uuid") == f"j-{attempt}"]

        @app.task(name=queue.MEASURE, shared=False)
        def measure(attempt: int, **_: object) -> None:
            if latest_s < 1:
                eventually(lambda: told(attempt) == begun)
            else:
                time.sleep(random.uniform(0.0, 0.5))
            within.put(told(attempt))

        with worker_of(app, keys.queue("lab"), keys.worker("lab")):
            for attempt in range(4):
                queue.send("lab", queue.Placed("j", attempt, "A", 7), by=app)
                assert within.get(timeout=60) == (begun if latest_s < 1 else [])
                eventually(lambda attempt=attempt: told(attempt) == all_of_it)


def test_events_and_remote_control_are_off_together(farm: Settings, redis: Redis) -> None:
    off, calls = queue.make_app(farm.model_copy(update={"celery_events": False})), Calls()
    with (
        events_of(off) as seen,
        worker_of(consumer(off, calls), keys.queue("lab"), keys.worker("lab")),
    ):
        queue.send("lab", placed(7), by=off)
        calls.get(timeout=60)
        assert off.control.ping(timeout=1.0) == []
    assert {str(each["type"]).partition("-")[0] for each in seen} <= {"worker"}


def test_a_password_reaches_the_broker(farm: Settings, redis: Redis) -> None:
    secret = farm.model_copy(update={"redis_password": SecretStr("a/b:c@d?e %")})
    redis.config_set("requirepass", "a/b:c@d?e %")
    try:
        queue.send("lab", placed(1), by=queue.make_app(secret))
        assert redis.llen("farm.lab") == 1
        fresh = farm.model_copy(update={"redis_url": f"{farm.redis_url}?db=5"})  # not a pooled, known connection
        with pytest.raises(ServiceDown):
            queue.send("lab", placed(1), by=queue.make_app(fresh))
    finally:
        redis.config_set("requirepass", "")


def test_a_broker_that_is_away() -> None:
    away = queue.make_app(Settings(redis_url="redis://127.0.0.1:1/0"))
    with pytest.raises(ServiceDown, match="does not take tasks"):
        queue.send("lab", placed(1), by=away)
    with pytest.raises(ServiceDown, match="does not take tasks"):
        queue.revoke(["j-1"], by=away)
    with pytest.raises(SetupError):
        queue.make_app(Settings(redis_url=""))


@pytest.mark.parametrize(("url", "broker"), [
    ("redis://h:1/2", "redis://h:1/2"),
    ("redis://u:p@h:1/2", "redis://u:p@h:1/2"),
    ("rediss://h:1/0?x=1", "rediss://h:1/0?x=1"),
    ("unix:///run/r.sock", "redis+socket:///run/r.sock?virtual_host=0"),
    ("unix:///run/r.sock?db=3", "redis+socket:///run/r.sock?virtual_host=3"),
])  # fmt: skip
def test_urls(url: str, broker: str) -> None:
    assert queue.broker_url(Settings(redis_url=url)) == broker


def test_messages_are_json_acknowledged_early_and_without_eta(farm: Settings, redis: Redis) -> None:
    conf = queue.make_app(farm).conf
    assert list(conf.accept_content) == ["json"] and conf.task_serializer == "json"
    assert not conf.task_acks_late and conf.task_ignore_result and conf.worker_prefetch_multiplier == 1
    assert conf.broker_transport_options["priority_steps"] == [0]


def test_the_app_of_celery_s_commands_is_configured_at_its_first_use(farm: Settings) -> None:
    script = "from farm.tasks.celery import app; print(app.conf.broker_url, app.conf.task_acks_late)"
    environment = {**os.environ, "FARM_REDIS_URL": farm.redis_url}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [queue.broker_url(farm), "False"]
