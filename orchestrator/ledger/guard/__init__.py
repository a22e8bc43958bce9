"""What a row must be so that the farm can read it, and what becomes of one that is not."""
