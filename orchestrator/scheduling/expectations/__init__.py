"""Expect the time and energy of jobs from blocks that have ended."""
