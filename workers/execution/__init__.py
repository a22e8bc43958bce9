"""Run one attempt at a job, from its plan to its record."""
