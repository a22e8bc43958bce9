"""Other engines, each in a process of its own: a crash is a row of the table, and no engine disturbs another's threads.

A module has `prepare(model)`, which brings the network into the engine's form and is not part of its set-up, and
`load(model, prepared) -> Engine`. `python -m benchmarks.engine.peers MODULE` obeys lines of JSON.
"""
