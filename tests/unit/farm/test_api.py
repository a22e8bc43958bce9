"""Parts of the farm from Python that need no farm: words, files of an experiment, models, comparison of outputs."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from pydantic import BaseModel

from client.spec_files import FILES, with_files
from farm import Farm
from farm.api.command_line import CommandFailed, CommandLine, as_words
from farm.api.experiment import Experiment, table_of
from farm.api.model_files import network_of, write_inputs, write_model
from farm.api.outputs import compare_outputs, right_outputs
from farm.api.plot import dots
from kernels.frontend.load import load_workload, random_inputs
from kernels.frontend.onnx import load_onnx
from kernels.reference import evaluate
from orchestrator.model.errors import ModelFileError, NoData, NotComparable, UnknownName
from orchestrator.model.experiment import Dataset, Side, StrategyChoice, TrainingSet, Workload
from orchestrator.model.experiment.engine_settings import EngineSettings
from tests.unit.kernels.front.onnx_models import save_model


def test_options_are_those_of_the_command_line() -> None:
    options: dict[str, Any] = {"fail_on": "worse", "for_": "2 h", "margin": ["a=1%", "b=2%"], "all": True, "html": None}
    words = as_words(options | {"save": False, "blocks": 3})
    assert words == [
        *("--fail-on", "worse", "--for", "2 h", "--margin", "a=1%", "--margin", "b=2%", "--all", "--blocks", "3")
    ]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (Workload, "workload"), (Dataset, "workload dataset"), (TrainingSet, "workload training dataset"),
        (StrategyChoice, "strategy"), (Side, "sides *"), (EngineSettings, "engine"),
    ],
)  # fmt: skip
def test_every_file_that_an_experiment_may_name_travels(model: type[BaseModel], path: str) -> None:
    """A field whose file is kept has the file's hash beside it; a driver's file names a library of its own machine."""
    kept = {name.removesuffix("_sha256") for name in model.model_fields if name.endswith("_sha256")} - {"driver"}
    if model is Workload:  # a model's hashes are those of `files`, a prompt's file is named below it
        kept = (kept | {"model"}) - {"prompt"}
    named = [each[:-1] if each[-1] == "*" else each for each in FILES]
    assert kept == {field for *holders, field in named if " ".join(holders) == path}


def test_files_keep_their_names_in_the_experiments_folder(tmp_path: Path) -> None:
    """Results are called after them; a second one of a name gets another."""
    spec = {
        "workload": {"onnx": "a/model.onnx", "dataset": {"inputs": "x.npy", "shard": 5}},
        "sides": {"baseline": {"agent": "..", "onnx": "b/model.onnx"}, "candidate": {"onnx": "sha256:ab"}},
        "matrix": {"network": ["lenet"]},
    }
    named, files = with_files(spec, tmp_path)
    assert named["workload"] == {"onnx": "model.onnx", "dataset": {"inputs": "x.npy", "shard": 5}}
    sides = {"baseline": {"agent": "3-..", "onnx": "2-model.onnx"}, "candidate": {"onnx": "sha256:ab"}}
    assert named["sides"] == sides
    assert files == {
        "model.onnx": tmp_path / "a/model.onnx", "x.npy": tmp_path / "x.npy",
        "2-model.onnx": tmp_path / "b/model.onnx", "3-..": tmp_path / "..",
    }  # fmt: skip
    assert spec["workload"]["onnx"] == "a/model.onnx"


def test_a_file_that_is_not_there_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError, match=rf"there is no file {tmp_path}/m/none\.onnx"):
        Farm().run({"name": "d", "workload": {"onnx": "m/none.onnx"}})


def test_a_folder_of_this_machine_holds_the_files_and_goes(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"x")
    with CommandLine().folder({"y.bin": tmp_path / "x.bin"}) as folder:
        CommandLine().fetch(folder, tmp_path / "back")
        assert (tmp_path / "back" / "y.bin").read_bytes() == b"x"
    assert not Path(folder).exists()


def test_a_model_takes_its_external_data_along(tmp_path: Path) -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    path = save_model(tmp_path / "m.onnx", [node], {"x": (2,)}, ["y"], {"w": np.array([1.5, -2.5], np.float32)})
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location="m.data", size_threshold=0)
    with CommandLine().folder({"0-m.onnx": path}) as folder:
        np.testing.assert_array_equal(load_onnx(Path(folder) / "0-m.onnx").constants["w"], [1.5, -2.5])
    (tmp_path / "m.data").unlink()
    with pytest.raises(ModelFileError, match="put it beside the model"), CommandLine().folder({"0-m.onnx": path}):
        pass


def _watched(script: str) -> Experiment:
    """One whose `farm watch` is this script of a shell."""
    return Experiment("x-1", CommandLine(host="lab", ssh=("sh", "-c", script)))


def test_waiting_ends_with_the_jobs_with_its_time_or_with_an_error() -> None:
    line = """echo '{"done": %d, "total": 2, "waiting": ""}'; """
    assert _watched(line % 1 + line % 2).wait(progress=False).id == "x-1"
    with pytest.raises(TimeoutError, match="1 of 2 jobs"):
        _watched(line % 1 + "exit 124").wait(progress=False, timeout="1 s")
    with pytest.raises(CommandFailed, match="no farm runs"):
        _watched("echo error: no farm runs >&2; exit 1").wait(progress=False)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    assert (network_of("lenet"), network_of("lenet.onnx"), network_of(tmp_path)) == ("lenet", None, None)
    with pytest.raises(ModelFileError, match="there is no file"):
        write_model("missing.onnx", None, tmp_path)
    with pytest.raises(ModelFileError, match="a dict is no model"):
        write_model({}, None, tmp_path)
    with pytest.raises(ModelFileError, match=r"2 inputs were given, and the model takes 1") as wrong:
        write_inputs([np.zeros(1), np.zeros(1)], None, "lenet", tmp_path / "x.npz")
    assert "data" in str(wrong.value.remedy)


def test_a_module_is_exported_and_stays_as_it_was(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.9)).train()
    path = write_model(module, {"x": np.ones((2, 4), np.float32)}, tmp_path)
    import onnxruntime

    x = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    (right,) = right_outputs(module, x, None)
    assert module.training
    np.testing.assert_allclose(found, right.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given", [1, 2, 5])
@pytest.mark.parametrize("by_name", [True, False])
def test_a_module_is_exported_for_any_batch(tmp_path: Path, seed: int, given: int, by_name: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Two(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.of = torch.nn.Linear(4, 3)

        def forward(self, a: Any, b: Any) -> Any:
            return self.of(a) + b

    rng, module = np.random.default_rng(seed), Two()
    arrays = {name: rng.normal(size=(given, size)).astype(np.float32) for name, size in (("a", 4), ("b", 3))}
    path = write_model(module, arrays if by_name else [*arrays.values()], tmp_path, any_batch=True)
    for batch in (1, int(rng.integers(2, 9))):
        graph = load_workload(network=None, onnx=path, seed=None, batch=batch)
        drawn = random_inputs(graph, seed)
        (found,) = evaluate(graph, drawn, dtype=np.float32).values()
        right = module(*map(torch.as_tensor, drawn.values())).detach().numpy()
        assert found.shape == (batch, 3)
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_inputs_by_name_are_the_modules_own(tmp_path: Path, seed: int) -> None:
    """Inputs come in any order, as doubles too; results in dictionaries and tuples are compared in their order."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import onnxruntime

    class Less(torch.nn.Module):  # type: ignore[misc]
        def forward(self, a: Any, b: Any) -> Any:
            return {"less": a - 2 * b, "more": (a + b, None)}

    rng = np.random.default_rng(seed)
    inputs = {"b": rng.normal(size=(2, 3)), "a": rng.normal(size=(2, 3))}
    path = write_model(Less(), inputs, tmp_path)
    assert path.name == "Less.onnx", "what results are called after"
    session = onnxruntime.InferenceSession(path)
    given = session.run(None, {name: value.astype(np.float32) for name, value in inputs.items()})
    found = {output.name: value for output, value in zip(session.get_outputs(), given, strict=True)}
    assert list(compare_outputs(found, right_outputs(Less(), inputs, None)).largest_error) == [0, 0]
    np.testing.assert_allclose(given[0], inputs["a"] - 2 * inputs["b"], rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelFileError, match="PyTorch cannot export the Less for these inputs"):
        write_model(Less(), inputs["a"], tmp_path)


def test_outputs_are_compared_by_name_or_in_order() -> None:
    found = {"a": np.array([[1.0, 2.0], [4.0, 3.0]], np.float32)}
    right = np.array([[1.0, 2.5], [3.0, 4.0]])
    for expected in (right, [right], {"a": right}):
        row = compare_outputs(found, expected).iloc[0]
        assert (row.largest_error, row.same_prediction) == (1.0, 0.5)
        assert row.psnr_db == pytest.approx(10 * np.log10(16 / (2.25 / 4)))
    nothing = compare_outputs({"a": np.ones((1, 2))}, np.zeros((1, 2))).iloc[0]  # warns of no logarithm
    assert nothing.psnr_db == float("-inf") and nothing.largest_error == 1.0
    assert right_outputs(None, {"x": 2, "y": 3}, lambda x, y: x + y) == 5
    for wrong in ([right, right], {"b": right}, right[:1]):
        with pytest.raises(NotComparable):
            compare_outputs(found, wrong)
    with pytest.raises(NoData, match="nothing to compare"):
        right_outputs("lenet", right, None)


def test_a_figure_that_no_result_has_is_named() -> None:
    told = {"metric": "latency", "basis": "", "unit": "ms", "value": 2.0, "interval": None}
    result = {"serial": "a", "source": "phone", "model": "m", "workload": "n", "engine": "pocketfarm", "backend": "cpu",
              "precision": "fp32", "options": {}, "outcomes": {"ok": 3}, "quantities": [told]}  # fmt: skip
    assert [text.get_text() for text in dots([result], "latency").figure.axes[0].get_yticklabels()] == ["m"]
    with pytest.raises(UnknownName, match="no result has the figure 'energy_j'") as wrong:
        dots([result], "energy_j")
    assert wrong.value.remedy == "there are: latency"


@pytest.mark.parametrize("places", [1, 2, 3])
def test_a_column_is_a_field_wherever_rows_lack_its_object(places: int, seed: int) -> None:
    """Rows with and without an interval, and with none at all: the same columns, none of them empty beside others."""
    pytest.importorskip("pandas")
    random = Random(seed + places)
    has = [random.random() < 0.5 for _ in range(6)] if places < 3 else [False] * 6
    rows = [{"a": n, "interval": {"low": 1.0, "high": 2.0, "level": 0.95} if each else None, "options": {"t": "1"}}
            for n, each in enumerate(has)]  # fmt: skip
    table = table_of(rows)
    assert sorted(table.columns) == ["a", "interval.high", "interval.level", "interval.low", "options.t"]
    assert list(table["interval.low"].notna()) == has
    assert table_of([]).empty


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"where": 'gpu == "x'}, "devices.where: device expression, column 8"),
        ({"where": "battery > 40 lightyears"}, "devices.where: device expression, column 14"),
        ({"backend": ["opengl"]}, "matrix.backend[0]: "), ({"sampling": {"blocks": 0}}, "sampling.blocks: "),
        ({"sampling": {"bloks": 3}}, "sampling.bloks: "), ({"name": "a b"}, "name: "),
    ],
)  # fmt: skip
def test_an_error_names_what_was_given_and_no_file_that_nobody_wrote(
    wrong: dict[str, Any], field: str, tmp_path: Path
) -> None:
    with pytest.raises(CommandFailed) as told:
        Farm(tmp_path).profile("lenet", **wrong)
    text = str(told.value.args[0])
    assert text.startswith("the experiment: ") and field in text, text
    assert "yaml" not in text and str(tmp_path) not in text, text
