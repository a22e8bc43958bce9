"""The Celery app. A placed block, or line of blocks, is a task on its host's queue; it may be lost, late or doubled,
since the lease decides who works and the ledger what was done.

One queue per host, early acknowledgement, no results, no ETA, JSON only (docs/architecture/tasks.md says why).
Events and remote control use channels of Redis, which keep nothing for a reader that is not there.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from celery import Celery
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from orchestrator.coordination import keys
from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.config import Settings

from .periodic import WORKS, Work

MEASURE, BY_HAND = "farm.measure", "farm.by_hand"
"""Names of the tasks, called with what a `Placed` says, and with the name of a question; workers/tasks.py has them."""


class Placed(NamedTuple):
    """A placed block, as its task's arguments name it; with others in line behind it, the first of them."""

    job: str
    attempt: int
    device: str
    token: int
    in_line: int = 0
    """Further blocks that may follow it in the same session."""

    @property
    def task_id(self) -> str:
        return task_id(self.job, self.attempt)


def task_id(job: str, attempt: int) -> str:
    """Return the id of an attempt's task: the same, however often it is sent."""
    return f"{job}-{attempt}"


def configuration(farm: Settings) -> dict[str, Any]:
    """Celery's settings for this farm."""
    secure = farm.redis_url.startswith("rediss:")
    authority = {"ssl_ca_certs": str(farm.tls_ca)} if farm.tls_ca else {}
    return {
        "broker_url": broker_url(farm),
        **({"broker_use_ssl": {"ssl_cert_reqs": ssl.CERT_REQUIRED, **authority}} if secure else {}),
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_transport_options": {
            "priority_steps": [0],
            # a task that a killed worker takes along is sent again, like every other that was lost
            "ack_emulation": False,
            "socket_connect_timeout": 2.0,
            "socket_timeout": 10.0,
            "socket_keepalive": not farm.redis_url.startswith("unix:"),
        },
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": False,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_default_queue": keys.queue(farm.host),
        "task_create_missing_queues": True,
        "task_publish_retry": False,
        "result_expires": None,
        "beat_schedule": {
            work.name: {
                "task": work.task,
                "schedule": work.period_s,
                "options": {"queue": keys.WORK, "expires": work.period_s, "retry": False},
            }
            for work in WORKS
        },
        "worker_pool": "threads",
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": farm.celery_events,
        "worker_send_task_events": farm.celery_events,
        "control_queue_expires": None,  # kombu's scripts would see to it, and a host's user runs none
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "enable_utc": True,
    }


def broker_url(farm: Settings) -> str:
    """The Redis URL as kombu writes it; a password of the settings is put in. Raises SetupError where there is none."""
    if not farm.redis_url:
        raise SetupError("no Redis is configured", remedy="start one with `farm up`, or set FARM_REDIS_URL")
    parts = urlsplit(farm.redis_url)
    password = farm.redis_password.get_secret_value() or parts.password or ""
    user = f"{quote(farm.redis_user or parts.username or '', safe='')}:{quote(password, safe='')}@" if password else ""
    if parts.scheme != "unix":
        return urlunsplit((parts.scheme, user + parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))
    database = dict(parse_qsl(parts.query)).get("db", "0")
    return f"redis+socket://{user}{parts.path}?{urlencode({'virtual_host': database})}"


def make_app(farm: Settings) -> Celery:
    """A Celery app on this farm's broker; connects at its first use."""
    made = Celery("pocketfarm", set_as_current=False)
    made.conf.update(configuration(farm))
    return made


def app_of(farm: Callable[[], Settings]) -> Celery:
    """The same for Celery's own commands; it asks for settings at its first use."""
    made = Celery("pocketfarm", set_as_current=False)
    made.add_defaults(lambda: configuration(farm()))
    return made


def send(host: str, placed: Placed, *, by: Celery) -> None:
    """Send a placed block to its host. Raises ServiceDown where the broker is away."""
    # `kwargsrepr`: for events and logs; Celery's own takes longer than the rest
    _send(
        by, MEASURE, keys.queue(host), kwargs=placed._asdict(), task_id=placed.task_id, argsrepr="",
        kwargsrepr=_said(placed),
    )  # fmt: skip


def send_question(host: str, name: str, *, by: Celery) -> None:
    """Send a host the name of a question. Raises ServiceDown where the broker is away."""
    _send(by, BY_HAND, keys.queue(host), kwargs={"name": name})


def send_work(work: Work, *, by: Celery) -> None:
    """Send the task of a periodic work, as beat does. Raises ServiceDown where the broker is away."""
    _send(by, work.task, keys.WORK, expires=work.period_s)


def _send(by: Celery, task: str, queue: str, **options: Any) -> None:
    try:
        by.send_task(task, queue=queue, ignore_result=True, retry=False, **options)
    except (KombuError, RedisError, OSError) as e:
        raise ServiceDown(f"the broker does not take tasks: {e}") from e


def revoke(task_ids: Collection[str], *, by: Celery) -> None:
    """Tell all workers to drop these tasks where they have not begun. Raises ServiceDown where the broker is away.

    This is `app.control.revoke`, which itself tries for ever where the broker is away.
    """
    mailbox = by.control.mailbox
    said = {"method": "revoke", "arguments": {"task_id": sorted(task_ids)}, "destination": None}
    try:
        with by.producer_or_acquire() as producer:
            producer.publish(
                said, exchange=mailbox.exchange, declare=[mailbox.exchange], serializer="json",
                headers={"clock": by.clock.forward(), "expires": 0}, retry=False,
            )  # fmt: skip
    except (KombuError, RedisError, OSError) as e:
        raise ServiceDown(f"the broker does not take tasks: {e}") from e


def _said(p: Placed) -> str:
    """Return the arguments as tools show them: the device first, since some cut the rest off."""
    return f"device={p.device}, job={p.job}, attempt={p.attempt}, token={p.token}, in_line={p.in_line}"
