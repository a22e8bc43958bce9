"""Store what was measured elsewhere: imports and archives, in pieces between which others write."""
