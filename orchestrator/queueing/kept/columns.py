"""Requests and readings as columns of a Parquet file, small enough for a ledger.

Times are whole nanoseconds, each after the first as the difference from the one before it; Parquet packs differences of
neighbours into as many bits as they need.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from orchestrator.model.telemetry import Reading
from orchestrator.queueing.requests import COLUMNS, Column

Arrays: TypeAlias = dict[str, np.ndarray[Any, np.dtype[Any]]]

NS = 1e9
SMALL = ("server", "kind", "outcome", "late")
OUTCOMES = ("served", "queue full", "too late", "lost")
NEVER = -1
"""A request that was dropped has not started."""


def pack_requests(runs: Sequence[Column]) -> bytes:
    """Tables of one run each."""
    rows = np.concatenate(list(runs))
    column = {name: rows[:, i] for i, name in enumerate(COLUMNS)}
    begun = np.isfinite(column["started"])
    started = np.where(begun, column["started"], column["admitted"])
    arrays: Arrays = {
        "run": np.repeat(np.arange(len(runs), dtype=np.int16), [len(each) for each in runs]),
        "intended_ns": _ns(column["intended"]),
        "admitted_after_ns": _ns(column["admitted"] - column["intended"]),
        "started_after_ns": np.where(begun, _ns(started - column["admitted"]), NEVER),
        "ended_after_ns": _ns(column["ended"] - started),
        "served_ns": _ns(column["served_s"]),
        "travel_ns": _ns(column["travel_s"]),
        "energy_j": column["energy_j"].astype(np.float32),
        **{name: column[name].astype(np.int16) for name in SMALL},
    }
    if (has := column["tokens"] > 0).any():
        arrays["tokens"] = column["tokens"].astype(np.int32)
        arrays["behind_ns"] = _ns(np.where(has, column["ended"] - column["first"], 0.0))
    return _written(pa.table({name: pa.array(values) for name, values in arrays.items()}))


def unpack_requests(packed: bytes, runs: int) -> list[Column]:
    """The tables of so many runs again, to the nanosecond."""
    found = _unpacked(packed)
    begun = found["started_after_ns"] != NEVER
    intended = found["intended_ns"] / NS
    admitted = intended + found["admitted_after_ns"] / NS
    started = admitted + np.where(begun, found["started_after_ns"], 0) / NS
    column = {
        "intended": intended,
        "admitted": admitted,
        "started": np.where(begun, started, np.nan),
        "ended": started + found["ended_after_ns"] / NS,
        "served_s": found["served_ns"] / NS,
        "travel_s": found["travel_ns"] / NS,
        "energy_j": found["energy_j"],
        "tokens": found.get("tokens", np.zeros(len(intended))),
        **{name: found[name] for name in SMALL},
    }
    behind_s = found.get("behind_ns", np.zeros(len(intended))) / NS
    column["first"] = np.where(column["tokens"] > 0, column["ended"] - behind_s, np.nan)
    rows = np.column_stack([column[name].astype(np.float64) for name in COLUMNS])
    return [rows[found["run"] == number] for number in range(runs)]


def plain_parquet(runs: Sequence[Column], servers: Sequence[str], classes: Sequence[str]) -> bytes:
    """Return a Parquet file for other programs: a row for each request, times in seconds, and names for numbers."""
    rows = np.concatenate(list(runs))
    column = {name: rows[:, i] for i, name in enumerate(COLUMNS)}
    found: dict[str, Any] = {
        "run": np.repeat(np.arange(len(runs), dtype=np.int16), [len(each) for each in runs]),
        "class": [classes[int(each)] for each in column["kind"]],
        "server": [servers[int(each)] if each >= 0 else None for each in column["server"]],
        "outcome": [OUTCOMES[int(each)] for each in column["outcome"]],
        "missed_deadline": column["late"].astype(bool),
    }
    found |= {f"{name}_s": column[name] for name in ("intended", "admitted", "started", "ended")}
    found |= {name: column[name] for name in ("served_s", "travel_s", "energy_j")}
    if column["tokens"].any():
        found |= {"first_token_s": column["first"], "tokens": column["tokens"].astype(np.int32)}
    file = io.BytesIO()
    parquet.write_table(pa.table(found), file, compression="zstd")
    return file.getvalue()


def pack_readings(servers: Sequence[Sequence[Reading]]) -> bytes:
    """Pack the readings of each server, in order."""
    schema = pa.schema(
        [
            ("server", pa.int16()), ("t_ns", pa.int64()), ("current_ua", pa.int64()), ("voltage_uv", pa.int64()),
            ("status", pa.dictionary(pa.int8(), pa.string())), ("temp_c", pa.float32()), ("skin_c", pa.float32()),
            ("cpu_khz", pa.int64()), ("gpu_hz", pa.int64()),
        ]
    )  # fmt: skip
    rows = [(number, *reading) for number, readings in enumerate(servers) for reading in readings]
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    return _written(table)


def unpack_readings(packed: bytes) -> list[tuple[int, Reading]]:
    """Server and reading, as they were packed."""
    rows = parquet.read_table(io.BytesIO(packed)).to_pylist()
    return [(row.pop("server"), Reading(**row)) for row in rows]


def _ns(seconds: Column) -> NDArray[np.int64]:
    return np.rint(np.maximum(seconds, 0.0) * NS).astype(np.int64)


def _written(table: pa.Table) -> bytes:
    whole = [field.name for field in table.schema if field.type == pa.int64()]
    others = [field.name for field in table.schema if field.name not in whole]
    file = io.BytesIO()
    parquet.write_table(
        table, file, compression="zstd", use_dictionary=others,
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    )  # fmt: skip
    return file.getvalue()


def _unpacked(packed: bytes) -> Arrays:
    table = parquet.read_table(io.BytesIO(packed))
    return {name: table.column(name).to_numpy() for name in table.column_names}
