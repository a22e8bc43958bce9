"""The markdown of a benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.engine.registry import CONTENDERS, find
from benchmarks.engine.results import NetworkResult, Results, Row, SetUp, read
from benchmarks.engine.table import best_of_ours, network_table, ratio, ratio_table, render


def row(name: str, ms: float, *, copies_ms: float | None = None) -> Row:
    set_up = SetUp(total_ms=1234.5, steps_ms={"load": 1234.5}, error=1e-7)
    return Row(
        contender=name, status="ok", device="gpu | 0", error=1e-7, copies_inside=copies_ms is None,
        copies_ms=copies_ms, cold=set_up, rounds_ms=[[ms] * 3] * 2,
    )  # fmt: skip


OURS, TUNED = row("ours OpenCL", 4.0, copies_ms=1.0), row("ours OpenCL tuned", 3.0, copies_ms=1.0)
INSIDE, OUTSIDE = row("ncnn Vulkan", 8.0), row("torch CUDA", 2.0, copies_ms=0.1)
FAILED = Row(contender="tinygrad", status="failed", why="no | device")


def result(*rows: Row) -> NetworkResult:
    return NetworkResult(
        network="lenet", seed=1, input_seeds=[1], reference="PyTorch", rows=list(rows), at=0.0, seconds=1.0
    )


def test_copies_are_added_where_the_peer_has_them_inside() -> None:
    assert ratio(TUNED, INSIDE) == pytest.approx((3 + 1) / 8)
    assert ratio(TUNED, OUTSIDE) == pytest.approx(3 / 2)


def test_the_faster_of_tuned_and_untuned_stands_for_an_api() -> None:
    assert best_of_ours([OURS, TUNED, INSIDE]) == [TUNED]
    slower = row("ours OpenCL tuned", 5.0, copies_ms=1.0)
    assert best_of_ours([slower, OURS, row("ours CPU 2T", 9.0)])[0] == OURS


def test_a_network_s_table_has_the_fastest_first_and_reasons_last() -> None:
    lines = network_table(result(FAILED, INSIDE, OURS)).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[4:]] == ["ours OpenCL", "ncnn Vulkan", "tinygrad"]
    assert "failed: no / device" in lines[-1]
    assert len({line.count("|") for line in lines[2:]}) == 1


def test_a_disturbed_machine_shows_in_the_load_and_the_least_sample() -> None:
    disturbed = OURS.model_copy(update={"rounds_ms": [[9.0, 4.0, 12.0], [8.0, 8.0]]})
    text = network_table(result(disturbed).model_copy(update={"load_average": 7.25}))
    assert text.startswith("### lenet (load 7.2)")
    assert "| 8.5 | 6% | 4 | - | 1 |" in text


def test_ratios_have_a_column_for_each_peer_and_a_dash_without_time() -> None:
    lines = ratio_table([result(OURS, TUNED, INSIDE, OUTSIDE, FAILED)]).splitlines()
    assert lines[0] == "| network | ours | ms | ncnn Vulkan | torch CUDA | tinygrad |"
    assert lines[2] == "| lenet | ours OpenCL tuned | 3 | 0.50 | 1.50 | - |"


def test_without_a_peer_there_are_no_ratios() -> None:
    assert ratio_table([result(OURS)]) == ratio_table([result(INSIDE)]) == ratio_table([]) == ""


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    machine: dict[str, str | int | float | list[str] | None] = {
        "cpu": "c", "cores": 2, "gpus": [], "commit": None, "packages": ["numpy 2"],
    }  # fmt: skip
    results = Results(machine=machine, options={}).with_network(result(OURS)).with_network(result(INSIDE, FAILED))
    results.write(tmp_path / "new" / "raw.json")
    again = read(tmp_path / "new" / "raw.json")
    assert again == results
    assert [each.contender for each in again.networks[0].rows] == ["ncnn Vulkan", "tinygrad"]
    assert render(again).startswith("c, 2 cores; no NVIDIA GPU; commit unknown; numpy 2")


def test_contenders_are_found_by_parts_of_their_names() -> None:
    assert find("") == list(CONTENDERS)
    assert find("vulkan") == ["ours Vulkan", "ncnn Vulkan"]
    assert find("ncnn,ours CPU") == ["ncnn Vulkan", "ncnn CPU", "ours CPU"]
    with pytest.raises(KeyError, match="tensorrt"):
        find("tensorrt")


def test_several_networks_have_a_median_and_a_largest_ratio_by_each_kind_of_time() -> None:
    """A sample's copies are in the processor's time already, and are added to the others."""
    mine = row("ours CPU 2T", 4.0, copies_ms=1.0).model_copy(update={"processor_ms": [6.0, 8.0]})
    first, second = (row("onnxruntime CPU 2T", ms).model_copy(update={"processor_ms": [10.0]}) for ms in (10.0, 5.0))
    networks = [result(mine, first), result(mine, second), result(mine)]
    lines = ratio_table(networks).splitlines()
    assert lines[-2:] == ["| median | ours CPU 2T |  | 0.75 |", "| largest | ours CPU 2T |  | 1.00 |"]
    machine = {"cpu": "c", "cores": 2, "gpus": [], "commit": None, "packages": []}
    text = render(Results(machine=machine, options={}, networks=networks))
    assert "By processor's time" in text and "| median | ours CPU 2T |  | 0.70 |" in text
