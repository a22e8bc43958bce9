"""Keep what people say of hosts and devices; the rest of the ledger is what the farm found out."""
