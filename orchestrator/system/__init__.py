"""The system that the farm runs on: its settings, files of its own, processes that begin and end."""
