"""Compute figures from records: statistics, best values of an axis, agreement of predictions, stopping rules."""
