"""Connect to Redis: find it, authenticate, check it, and translate its errors."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit, urlunsplit

from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.config import Settings

from .connections import Client, Connections

CONNECT_S = 2.0
REPLY_S = 10.0
DISK_FULL = "make room on the disk that holds the farm's state folder; the farm then goes on by itself"
NOT_THERE = "start the farm with `farm up`, or set FARM_REDIS_URL to a Redis that runs"
NOT_YET_VALID = 9
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID."""

P = ParamSpec("P")
R = TypeVar("R")


def connect(settings: Settings) -> Redis:
    """Connect to the farm's Redis. Raises SetupError where none is configured, it refuses us or its certificate is not
    one of our authority, ServiceDown where it does not answer, or not yet: this machine's clock may be behind."""
    client = client_of(settings)
    try:
        client.ping()
    except (AuthenticationError, NoPermissionError) as e:
        raise SetupError(
            f"Redis at {shown_url(settings.redis_url)} refuses us: {e}",
            remedy="set FARM_REDIS_PASSWORD (and FARM_REDIS_USER) for that Redis; of a host: `farm host add` once more",
        ) from e
    except RedisError as e:
        if refused := _refused_certificate(e):
            raise SetupError(
                f"the certificate of Redis at {shown_url(settings.redis_url)} is not valid: {refused}",
                remedy="set FARM_TLS_CA to the authority of that farm; of a host: `farm host add` there once more",
            ) from e
        full = _cannot_write(e)
        raise ServiceDown(
            f"Redis at {shown_url(settings.redis_url)} {'cannot write its file' if full else 'does not answer'}: {e}",
            remedy=DISK_FULL if full else NOT_THERE,
        ) from e
    return client


def _refused_certificate(error: BaseException | None) -> str:
    """Return why the certificate will not do later either; "" where it is not that."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code != NOT_YET_VALID:
            return error.verify_message
        error = error.__context__
    return ""


def client_of(settings: Settings, *, reply_s: float = REPLY_S) -> Redis:
    """A client that connects at its first command and waits `reply_s` for each answer.

    Raises SetupError where no usable URL is configured.
    """
    if not settings.redis_url:
        raise SetupError(
            "no Redis is configured and no farm runs here",
            remedy="start one with `farm up`, or set FARM_REDIS_URL (redis://, rediss:// or unix://)",
        )
    password = settings.redis_password.get_secret_value()
    secret = {"password": password} if password else {}
    if settings.redis_user:
        secret["username"] = settings.redis_user
    if settings.tls_ca and settings.redis_url.startswith("rediss:"):
        secret["ssl_ca_certs"] = str(settings.tls_ca)
    try:
        connections = Connections.from_url(
            settings.redis_url,
            decode_responses=True,
            encoding_errors="replace",
            socket_timeout=reply_s,
            **({} if settings.redis_url.startswith("unix:") else {"socket_connect_timeout": CONNECT_S}),
            **secret,
        )
        return Client.from_pool(connections)
    except ValueError as e:
        raise SetupError(
            f"the Redis URL {shown_url(settings.redis_url)} cannot be used: {e}",
            remedy="FARM_REDIS_URL is redis://HOST:PORT/0, rediss://HOST:PORT/0 or unix:///PATH",
        ) from e


def shown_url(url: str) -> str:
    """A URL without its user, password and options: fit for a message."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _said(error: RedisError) -> str:
    """Return what Redis said: the client puts words of its own in front of what a pipeline is answered."""
    return str(error).rpartition("caused error: ")[2]


def _cannot_write(error: RedisError) -> bool:
    """Return whether Redis runs, and takes nothing because its file cannot be written: mostly the disk is full."""
    return _said(error).startswith("MISCONF")


def _is_away(error: ResponseError) -> bool:
    """Return whether Redis cannot serve anybody now. The client drops the first word of errors that it knows."""
    kinds = (ReadOnlyError, MasterDownError, OutOfMemoryError)
    return isinstance(error, kinds) or _cannot_write(error) or _said(error).startswith("NOREPLICAS")


class WrongType(ServiceDown):
    """A key has another type than it should."""


def is_wrong_type(error: BaseException | None) -> bool:
    """Return whether a key has another type than it should: as if Redis had lost it: the scheduler removes it."""
    return isinstance(error, ResponseError) and "WRONGTYPE" in str(error)


def translated(call: Callable[P, R]) -> Callable[P, R]:
    """Decorator: errors of Redis become ServiceDown. A refused command is a programming error and passes."""

    @functools.wraps(call)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except ResponseError as e:
            if is_wrong_type(e):
                raise WrongType(
                    f"a key in Redis has another type than it should: {e}",
                    remedy="a scheduler that runs removes such keys within seconds",
                ) from e
            if not _is_away(e):
                raise
            raise ServiceDown(f"Redis cannot serve now: {e}", remedy=DISK_FULL if _cannot_write(e) else None) from e
        except AuthenticationError as e:
            restarted = "the farm was started again meanwhile, with another password: run the command again"
            raise ServiceDown(f"Redis refuses us: {e}", remedy=restarted) from e
        except RedisError as e:
            raise ServiceDown(f"Redis does not answer: {e}") from e

    return wrapper
