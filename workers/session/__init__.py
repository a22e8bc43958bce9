"""A device held for one attempt: lock, conditions, supply, what is put back."""
