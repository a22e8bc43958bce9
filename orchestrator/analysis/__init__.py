"""Figures from records: statistics, best combinations, agreement of predictions, stopping rules."""
