"""Passes for functions that models write in several steps, and for layers that compute one of their result."""
