"""Accept an experiment: check and store its files, put its jobs into the ledger."""
