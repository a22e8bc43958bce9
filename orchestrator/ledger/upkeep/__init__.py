"""Look after the ledger: check it, copy it, put it back, archive what is old and make room."""
