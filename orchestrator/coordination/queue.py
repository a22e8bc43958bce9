"""The Celery app: wake-ups to hosts, nothing more. A wake-up may be lost, late or doubled: the lease decides.

One queue per host, early acknowledgement, no results, no ETA, JSON only (docs/architecture/scheduling.md says why).
"""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from celery import Celery
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from orchestrator.config import Settings, settings
from orchestrator.errors import ServiceDown, SetupError

WAKE = "farm.wake"
"""Name of the task, called with (serial, token); workers/tasks.py implements it."""


def queue_name(host: str) -> str:
    """The queue that a host's worker consumes."""
    return f"farm.{host}"


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
            # a wake-up that a killed worker takes along is sent again, like every other that was lost
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
        "task_default_queue": queue_name(farm.host),
        "task_create_missing_queues": True,
        "task_publish_retry": False,
        "worker_pool": "threads",
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
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


app = Celery("pocketfarm")
app.add_defaults(lambda: configuration(settings()))
"""The app of this process: configured at its first use, not at import."""


def wake(host: str, serial: str, token: int, *, by: Celery = app) -> None:
    """Tell a host that a lease waits for it. Raises ServiceDown where the broker is away."""
    try:
        # `argsrepr`: for Celery's log; its own takes longer than the rest
        by.send_task(
            WAKE, args=[serial, token], argsrepr=f"{serial} {token}", kwargsrepr="", queue=queue_name(host),
            ignore_result=True, retry=False,
        )  # fmt: skip
    except (KombuError, RedisError, OSError) as e:
        raise ServiceDown(f"the broker does not take wake-ups: {e}") from e
