"""Decide which job runs where and when."""
