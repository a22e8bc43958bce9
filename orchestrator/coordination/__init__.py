"""Everything that is in Redis, and the files that hosts share."""
