"""Random bytes at every boundary: whatever comes, a reader answers or refuses in its own words.

`pytest tests/fuzz` plays the corpus (every input that once found a fault) and some thousands of mutated seeds.
`make fuzz MINUTES=30` goes on for longer, and has the agent's plan reader under libFuzzer with sanitizers; what it
finds is written to `tests/fuzz/corpus/<boundary>/`.
"""
