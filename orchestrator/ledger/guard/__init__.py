"""Say what a row must be so that the farm can read it, and leave out one that is not."""
