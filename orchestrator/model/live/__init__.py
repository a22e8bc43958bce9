"""State that lives in Redis and in the scheduler: announcements, leases, the queue, why a job waits."""
