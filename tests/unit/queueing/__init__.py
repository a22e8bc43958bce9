"""Queueing experiments."""
