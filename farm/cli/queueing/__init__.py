"""Commands on queues of requests."""
