"""Experiment files: what is accepted, and what a person is told."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from orchestrator import spec
from orchestrator.model.device import Api
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import Experiment
from orchestrator.model.quantity import parse_bytes, parse_seconds

GOOD = """
name: first
workload: {network: squeezenet_v1_0}
devices: {where: 'gpu_vendor == "adreno"', count: any}
matrix: {backend: [opencl, vulkan], precision: fp16, threads: [1, 2]}
sampling: {blocks: 2, deadline: 90 s}
conditions: {free_storage: 1 GiB, battery_temp_max: 38 C}
measure: {quantities: [latency, power], power_period: 50 ms}
"""


def problems(text: str) -> dict[str, str]:
    """Field -> `line:column message` of everything wrong with a text."""
    with pytest.raises(spec.SpecProblems) as caught:
        spec.parse(text, "x.yaml")
    return {p.field: f"{p.place.line}:{p.place.column} {p.message}" for p in caught.value.problems}


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    experiment = spec.load(path)
    assert experiment.matrix.backend == (Api.OPENCL, Api.VULKAN)
    assert experiment.sampling.deadline == 90.0
    assert experiment.conditions.free_storage == 2**30
    assert experiment.measure.power_period == pytest.approx(0.05)


def test_a_studys_file_is_read_with_the_experiment(tmp_path: Path) -> None:
    """The tables that are named are read; what is wrong is told with the file that has it."""
    path, study = tmp_path / "mine.yaml", tmp_path / "study.yaml"
    published = "published: {study: study.yaml, tables: [{table: II, columns: {time: {}}}]}\n"
    path.write_text(GOOD + published)
    with pytest.raises(SpecError, match=r"study\.yaml: cannot be read"):
        spec.load(path)
    tables = "".join(f"- {{table: {n}, title: t, columns: {{time: s}}, rows: {{A: [1h1m1s]}}}}\n" for n in ("I", "II"))
    study.write_text(f"source: somebody\ncells:\n{tables}")
    found = spec.load(path).published
    assert found is not None and [(each.table, each.rows) for each in found.read.cells] == [("II", {"A": (3661.0,)})]
    study.write_text(study.read_text().replace("time: s", "times: s"))
    with pytest.raises(SpecError, match=r"mine.yaml:9:12: published: table II has no 'time'; it has times"):
        spec.load(path)
    study.write_text(study.read_text().replace("source", "sauce"))
    with pytest.raises(spec.SpecProblems, match=r"study.yaml:1:1: sauce: unknown field; did you mean `source`"):
        spec.load(path)


def test_figures_of_their_own_are_refused_in_files_and_left_out_of_old_ledgers() -> None:
    old = GOOD + "published: {source: somebody, columns: [ms], rows: [[52.7]]}\n"
    assert "give `published.study`" in problems(old)["published.source"]
    assert Experiment.model_validate(yaml.safe_load(old)).published is None


def test_several_workloads_are_told_apart_by_their_place_in_the_list() -> None:
    several = "[{netwrk: lenet}, {onnx: a.onnx, seed: many}, {network: lenet, dataset: {shard: 0}}]"
    found = problems(GOOD.replace("{network: squeezenet_v1_0}", several))
    assert found["workload[0].netwrk"].startswith("3:13 unknown field; did you mean `network`?")
    assert found["workload[1].seed"] == "3:50 expected a whole number, got 'many'"
    assert found["workload[2].dataset.shard"] == "3:91 expected 1 or more, got 0"


@pytest.mark.parametrize(
    ("workloads", "more", "told"),
    [
        ("[{network: lenet}, {onnx: b/lenet.onnx}]", "", "two are called `lenet`"),
        ("[{network: lenet}, {wait: 1 s}]", "", "several are models by `network` or `onnx`"),
        ("[{network: lenet}, {network: alexnet}]", "sides: {candidate: {onnx: c.onnx}}", "leave out `sides: onnx,"),
        ("[{network: lenet}, {onnx: b.onnx}]", "engine: {models: {mnn: x.mnn}}", "there are b, lenet"),
        ("{network: lenet}", "engine: {models: {mnn: {lenet: x.mnn}}}", "give its file alone"),
    ],
)  # fmt: skip
def test_workloads_that_are_no_list_of_models(workloads: str, more: str, told: str) -> None:
    text = GOOD.replace("{network: squeezenet_v1_0}", workloads).replace("threads:", "engine: mnn, threads:") + more
    assert told in " ".join(problems(text).values())


def test_every_problem_is_listed_with_its_place() -> None:
    found = problems(
        "name: a\nworkload: {network: n}\nsampling:\n  block: 3\n  blocks: 0\n  deadline: 60\n"
        "matrix:\n  backend: [opencl, vulcan]\n  precision: [fp32, fp32]\n  colour: red\n"
        "conditions:\n  free_storage: 3 parsecs\n"
        "devices:\n  where: gpu_vender == 'x'\n  count: some\n"
    )
    assert found["sampling.block"].startswith("4:3 unknown field; did you mean `blocks`?")
    assert found["sampling.blocks"].startswith("5:11 ")
    assert found["sampling.deadline"] == "6:13 60 has no unit; write e.g. `60 s`; units: ns, us, ms, s, min, h"
    assert found["matrix.backend[1]"].startswith("8:21 did you mean `vulkan`?")
    assert "listed twice" in found["matrix.precision"]
    assert found["matrix.colour"].startswith("10:3 unknown field; allowed: network, backend")
    assert "GiB" in found["conditions.free_storage"]
    assert "did you mean `gpu_vendor`" in found["devices.where"]
    assert "'all' or 'any'" in found["devices.count"]
    assert len(found) == 9


def test_a_name_that_commands_take_for_something_else_is_refused() -> None:
    for name, why in (("latest", "newest of all"), ("-x", "begins with"), ("..", "begins with")):
        assert why in problems(f"name: '{name}'\nworkload: {{network: n}}\n")["name"]
    assert spec.parse("name: latest-1\nworkload: {network: n}\n").name == "latest-1"


def test_conditions_that_can_never_hold_are_refused() -> None:
    given = "conditions: {battery_percent: {min: 80, max: 101}, battery_temp_min: 40 C, battery_temp_max: 30 C}"
    assert problems(f"name: a\nworkload: {{network: n}}\n{given}\n") == {
        "conditions.battery_percent.max": "3:46 a charge is 0 to 100 %, got 101",
        "conditions.battery_temp_min": "3:70 40 C is above battery_temp_max, 30 C",
    }


def test_what_is_wanted_is_said_in_plain_words() -> None:
    found = problems(
        "name: [1]\ndescription:\nworkload: lenet\npriority: high\nsampling: {blocks: ten, samples: 1.5, warmup: -1}\n"
        "devices: {count: many}\nconditions: {airplane_mode: perhaps}\nmeasure: {quantities: latency}\n"
    )
    assert {field: told.partition(" ")[2] for field, told in found.items()} == {
        "name": "expected a text, got [1]",
        "description": "expected a text, got nothing",
        "workload": "expected a mapping (`key: value`), got 'lenet'",
        "priority": "expected a whole number, got 'high'",
        "sampling.blocks": "expected a whole number, got 'ten'",
        "sampling.samples": "expected a whole number, got 1.5",
        "sampling.warmup": "expected 0 or more, got -1",
        "devices.count": "did you mean `any`? expected 'all' or 'any' or a whole number, got 'many'",
        "conditions.airplane_mode": "expected true or false, got 'perhaps'",
        "measure.quantities": "expected a list (`[a, b]`), got 'latency'",
    }


def test_what_yaml_reads_otherwise_is_said() -> None:
    found = problems("name: 2026-11-27\nworkload: {network: n}\nmatrix: {backend: [gpu]}\nsampling: {load: '10'}\n")
    assert "got the date 2026-11-27; a text is written in quotes" in found["name"]
    assert "did you mean" not in found["matrix.backend[0]"], "a gpu is no misspelt cpu"
    assert "10 has no unit" in found["sampling.load"]
    assert "spaces, not with tabs" in problems("name: a\nworkload:\n\tnetwork: n\n")[""]


def test_the_message_names_file_line_and_field() -> None:
    with pytest.raises(SpecError, match=r"x\.yaml:2:11: workload: give exactly one of"):
        spec.parse("name: a\nworkload: {network: n, onnx: m.onnx}\n", "x.yaml")


@pytest.mark.parametrize("field", ["sampling: {deadline: 60}", "measure: {power_period: 0.1}",
                                   "conditions: {free_storage: 0}", "conditions: {battery_temp_max: 40}"])  # fmt: skip
def test_a_number_without_a_unit_is_refused(field: str) -> None:
    (message,) = problems(f"name: a\nworkload: {{network: n}}\n{field}\n").values()
    assert "has no unit" in message


@pytest.mark.parametrize("period", ["1 us", "2 h"])
def test_a_period_that_no_gauge_is_read_at_is_refused(period: str) -> None:
    (message,) = problems(f"name: a\nworkload: {{network: n}}\nmeasure: {{power_period: {period}}}\n").values()
    assert "`1 ms` to `60 s`" in message


def test_missing_and_repeated_keys() -> None:
    assert "required" in problems("description: x\nworkload: {network: n}\n")["name"]
    assert "first in line 1" in problems("name: a\nworkload: {network: n}\nname: b\n")["name"]


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "a: &x [*x]", "[" * 3000, "a: 1\n---\nb: 2",
                                  "a: !!python/object:os.system x", "name: 2020-13-99", "\x00"])  # fmt: skip
def test_texts_that_are_no_experiment(text: str) -> None:
    assert problems(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        spec.load(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8 at byte 6"):
        spec.load(tmp_path / "binary.yaml")
    (tmp_path / "big.yaml").write_bytes(b"#" * (spec.MAX_BYTES + 1))
    with pytest.raises(SpecError, match="larger than"):
        spec.load(tmp_path / "big.yaml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sampling: {frames: 10}\nmatrix: {batch: [1, 4]}", "sampling.frames 10 is no multiple of the batch 4"),
        ("matrix: {pipeline: [none, balanced]}", "needs a stream: give `sampling.frames`"),
        ("matrix: {affinity: big}\nconditions: {affinity: little}", "give the cores once"),
        ("sampling: {frames: 10, mode: sustained, load: 1 s}", "leave out `frames`"),
        ("matrix: {affinity: 'all; reboot'}", "a list of cores such as `0-3,6`"),
        ("conditions: {affinity: 3-}", "a list of cores such as `0-3,6`"),
    ],
)
def test_streams_pipelines_and_cores_that_do_not_fit(text: str, told: str) -> None:
    assert any(told in message for message in problems(f"name: a\nworkload: {{network: n}}\n{text}\n").values())


def test_fusions_are_words_lists_or_a_switch() -> None:
    def fuse(value: str) -> tuple[str, ...] | None:
        return spec.parse(f"{GOOD.strip().replace('threads: [1, 2]', f'fuse: {value}')}\n", "x.yaml").matrix.fuse

    assert fuse("[all, none, [residual, activation]]") == ("all", "none", "activation+residual")
    assert fuse("residual+activation") == ("activation+residual",)
    assert fuse("[true, false]") == ("all", "none")
    twice = GOOD.replace("threads: [1, 2]", "fuse: [true, all]")
    assert "listed twice" in problems(twice)["matrix.fuse"]


def test_units_are_taken_written_out(seed: int) -> None:
    chosen = random.Random(seed)
    for word, unit in (("minute", "min"), ("Second", "s"), ("hour", "h"), ("millisecond", "ms"), ("min", "min")):
        number = chosen.randint(1, 500)
        for text in (f"{number} {word}", f"{number}{word}s" if len(word) > 3 else f"{number} {word}s"):
            assert parse_seconds(text) == parse_seconds(f"{number} {unit}")
    for wrong, meant in (("2 minits", "did you mean `2 min"), ("3 minutes GiB", "expected a time")):
        with pytest.raises(ValueError, match=meant):
            parse_seconds(wrong)
    with pytest.raises(ValueError, match="not known here; expected a size"):
        parse_bytes("3 minutes")


def test_who_asks_for_energy_measures_power() -> None:
    asked = GOOD.replace("[latency, power]", "[latency, {}]")
    of = [spec.parse(asked.replace("{}", word)).measure.quantities for word in ("energy", "power")]
    assert of[0] == of[1] == ("latency", "power")
    assert "did you mean `energy`?" in problems(asked.replace("{}", "enrgy"))["measure.quantities"]
    assert "listed twice" in problems(asked.replace("{}", "energy, power"))["measure.quantities"]
