"""Data in and out: samples of others, power traces, rows in files."""
