"""Files by their hash: fetched from the farm, and given to it."""
