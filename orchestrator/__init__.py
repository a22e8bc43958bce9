"""Decide what runs where and when, keep the records and derive the results."""
