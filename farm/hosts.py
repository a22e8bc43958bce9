"""Write the file with which another machine joins the farm."""

from __future__ import annotations

from pathlib import Path

from orchestrator.acts import Actor, Site
from orchestrator.acts.hosts import add_host, check_name
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings

from . import endpoints, join
from .reach import Reach, authority_of


def add(site: Site, actor: Actor, name: str, path: Path) -> None:
    """Give a host access of its own to the farm that runs, and write the file with which it joins.

    Raises SetupError where the name is none, the farm does not listen, or the file cannot be written.
    """
    check_name(name)
    settings = site.settings
    redis_url, files_url = _urls(settings)
    secret, secret_sha256 = join.new_secret()
    ca = authority_of(settings.state).certificate.read_text()
    join.write(path, join.Join(host=name, redis_url=redis_url, files_url=files_url, secret=secret, ca=ca))
    add_host(site, actor, name, secret_sha256)


def _urls(settings: Settings) -> tuple[str, str]:
    """Return the URLs of Redis and of the files, as hosts reach them. Raises SetupError."""
    farm = endpoints.read(settings.state)
    if farm and farm.files_url:
        return farm.hosts_redis_url, farm.files_url
    if settings.listen:
        reach = Reach(settings.listen, "", settings.redis_port, settings.web_port, authority_of(settings.state))
        return reach.redis_url, reach.web_url
    raise SetupError(
        "the farm lets no other machine in",
        remedy="start it with `farm up --listen ADDRESS`, on this state folder; with compose, set FARM_LISTEN in .env",
    )
