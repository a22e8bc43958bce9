"""Histories of nights: what changed, and whose change it is."""
