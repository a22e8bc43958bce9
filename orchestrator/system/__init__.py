"""What the farm asks of the system that it runs on: files of its own, processes that begin and end."""
