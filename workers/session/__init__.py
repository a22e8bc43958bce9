"""Hold a device for one attempt: lock, conditions, supply, and restoring what was changed."""
