"""Celery in the farm: the queues of hosts, the workers that read them, periodic work."""
