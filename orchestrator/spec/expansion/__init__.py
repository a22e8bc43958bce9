"""Expand an experiment over devices into jobs and exclusions: cells, device selection, run order. Pure."""
