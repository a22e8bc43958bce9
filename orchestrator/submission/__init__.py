"""An experiment is accepted: its files checked and kept, its jobs in the ledger."""
