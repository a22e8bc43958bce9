"""Runs on devices in the ledger: all requests in packed columns, with where they come from and what befell them."""

from __future__ import annotations

from .keep import keep_run
from .run import KeptRun, KeptServer, Read, as_parquet, data_of, list_runs, read_run

__all__ = ["KeptRun", "KeptServer", "Read", "as_parquet", "data_of", "keep_run", "list_runs", "read_run"]
