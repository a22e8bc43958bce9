"""Tiles whose subgroups multiply matrices of halves at once, on units that the device has for it."""
