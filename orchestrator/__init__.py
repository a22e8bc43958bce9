"""DECIDES: what runs where and when, and what came of it."""
