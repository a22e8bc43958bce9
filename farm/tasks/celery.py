"""The app for Celery's own commands: `celery -A farm.tasks inspect active`, `celery -A farm.tasks flower`."""

from __future__ import annotations

from farm.endpoints import settings_for
from orchestrator.coordination.tasks.queue import app_of

app = app_of(lambda: settings_for(None))
