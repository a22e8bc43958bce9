"""From an experiment and devices to jobs and exclusions: cells, device selection, run order. Pure."""
