"""From an experiment and devices to jobs and exclusions: combinations, device selection, run order. Pure."""
