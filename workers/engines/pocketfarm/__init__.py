"""Our own engine. What measures, tunes and serves with it outside the queue may use its rooms; all others its door."""
