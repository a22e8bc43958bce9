"""People in the ledger: who may use the farm, their tokens and projects, what they did, what they were answered."""
