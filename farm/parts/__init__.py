"""The parts of a running farm: how each is started, and when it is ready."""
