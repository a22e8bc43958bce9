"""Data models of the farm: frozen, validated, described. Imports nothing of ours."""
