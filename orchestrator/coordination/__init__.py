"""Access to everything that is in Redis, and to the files that hosts share."""
