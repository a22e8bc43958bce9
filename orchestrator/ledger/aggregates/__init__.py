"""Aggregates for the exporter, of a transaction that only reads."""
