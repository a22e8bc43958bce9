"""`farm tune`: the best choices of a device, measured on it."""
