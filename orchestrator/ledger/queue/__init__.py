"""The queue as the scheduler follows it: what changed since it last looked, and the jobs whose turn is next."""
