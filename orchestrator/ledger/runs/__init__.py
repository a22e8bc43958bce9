"""Runs that are more than jobs: nights of suites, and queueing experiments."""
