"""MEASURES: the native agent (C++), and virtual phones (Python) that run it."""
