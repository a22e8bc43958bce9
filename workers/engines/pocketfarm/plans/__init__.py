"""Plans for a device: compiled, cached, within its driver's limits."""
