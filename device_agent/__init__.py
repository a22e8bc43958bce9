"""MEASURES: the native agent (C++), and its build."""
