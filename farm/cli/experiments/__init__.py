"""Commands on experiments and their jobs."""
