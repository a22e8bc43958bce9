"""Periodic work and nights, and the app for Celery's own commands: `celery -A farm.tasks inspect active`."""
