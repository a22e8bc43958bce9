"""The system that the farm runs on: files of its own, processes that begin and end."""
