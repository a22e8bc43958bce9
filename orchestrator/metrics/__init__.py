"""Export the farm to Prometheus: live state from Redis, counts and results from the ledger, read at each scrape.

One exporter process (`python -m orchestrator.metrics`) reads shared state, so that a device that is gone is gone from
the metrics too. Base units, bounded labels: a serial, a host, a network name; never a job id. `docs/metrics.md` lists
every family.
"""
