"""Answers of language models beside each other, made at random."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

from orchestrator.analysis.agreement import AnswerRow, answer_rows
from orchestrator.model.device import Api, Precision
from orchestrator.model.event import Sample
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.record import Record
from orchestrator.report.parts import answers
from tests.unit.orchestrator import make
from tests.unit.report.records import figures

MODEL = Workload(language_model="m.gguf", language_model_sha256="0" * 64)


def answered(tokens: list[int], serial: str = "A", precision: str = "fp32", **options: Any) -> tuple[Cell, Record]:
    cell = Cell(workload=MODEL, backend=Api.CPU, precision=Precision(precision), options=options)
    job = Job.model_validate({**make.job(candidates=(serial,)).model_dump(), "cell": cell})
    base = {"seq": 0, "t_ns": 0, "index": 0, "phase": "timed", "start_ns": 0, "duration_ns": 9}
    sample = Sample(**base, tokens=tuple(tokens), token_ns=tuple(range(1, len(tokens) + 1)), prompt=3)
    return cell, make.record(job, attempt=1, token=1, serial=serial, samples=(sample,))


def rows_of(*made: tuple[Cell, Record]) -> tuple[AnswerRow, ...]:
    cells = {cell.cell_id: cell for cell, _ in made}
    return answer_rows(figures([record for _, record in made], cells), cells)


def test_answers_agree_as_far_as_they_do(seed: int) -> None:
    """Our own engine in fp32 is the base wherever it stands; what is behind the first token that differs is another
    text, and an answer that is shorter is compared as far as it goes."""
    rng = random.Random(seed)
    base = [rng.randrange(50) for _ in range(rng.randint(2, 40))]
    place = rng.randrange(len(base))
    other = [*base[:place], base[place] + 1, *(rng.randrange(50) for _ in base[place + 1 :])]
    made = [
        answered(base),
        answered(other, engine="onnxruntime_genai"),
        answered(other, precision="int8"),
        answered([*base[: place + 1], 7, 7], serial="B") if place + 1 == len(base) else answered(base, serial="B"),
        answered(other, serial="B", precision="int8"),
        answered(base[:1], generate=1),
        answered(other, prompt=7),
    ]
    rng.shuffle(made)
    found = {(row.label, row.serial): row for row in rows_of(*made)}
    assert len(found) == len(made)
    differs = (len(base), place, base[place] + 1, base[place])
    for row in found.values():
        told = row.tokens, row.same, row.this_token, row.base_token
        if "prompt=7" in row.label:
            assert told == (len(base), len(base), None, None) and row.base == "", "another text"
        elif "genai" in row.label or "int8" in row.label:
            assert told == differs and row.base
        else:
            assert row.this_token is None and row.same == row.tokens == (1 if "generate=1" in row.label else len(base))
    table = answers.section(tuple(found.values()))
    devices = [serial for serial, _ in groupby(row[0] for row in table.rows)]
    assert len(devices) == len(set(devices)), "the rows of a device stand together"
    (shown,) = [row for row in table.rows if "genai" in row[1]]
    assert shown[2:] == (f"{place} of {len(base)}", f"{base[place] + 1} for {base[place]}, at {place + 1}")
    for row, told in zip(table.rows, sorted(found.values(), key=lambda each: devices.index(each.serial)), strict=True):
        assert row[1].endswith("(base)") == (not told.base)
    assert not answers.section(rows_of(answered(base))).rows, "one answer agrees with nothing"
