"""Suites and nights: what is decided, without a farm."""
