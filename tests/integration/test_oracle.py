"""The oracle: Caffe's own output for a trained SqueezeNet v1.0, against ours, as a user gets it.

The network, the input and the output are the authors' (study S); they lie beside the checkout and are never part of it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.cli import main
from tests.phones import mend, start_phones
from tests.servers import PrivateAdb, private_adb_server
from virtual_phones.launch import VirtualPhones

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "squeezenet_v1_0"
MODEL = DATA / "squeezenet_v1_0.onnx"
TOLERANCE = 1e-4
BACKENDS = ("opencl", "vulkan", "cpu")

pytestmark = [
    pytest.mark.skipif(not MODEL.exists(), reason="the trained SqueezeNet of study S is not beside this checkout"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrivateAdb, VirtualPhones]]:
    """A virtual Galaxy S7 and a real adb server; ask for `phone`, which is mended for each test."""
    folder = tmp_path_factory.mktemp("phone")
    with private_adb_server(folder / "adb") as adb, start_phones(folder / "phones", ["galaxy_s7"]) as phones:
        yield adb, phones


@pytest.fixture
def phone(running: tuple[PrivateAdb, VirtualPhones], monkeypatch: pytest.MonkeyPatch) -> str:
    """The connected phone's name; `farm` reaches it by the environment."""
    adb, phones = running
    mend(adb, phones.control, phones.serials)
    monkeypatch.setenv("FARM_ADB_PORT", str(adb.port))
    return phones.phones[0].name


@pytest.fixture(scope="module", params=BACKENDS)
def here(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of every node, as this machine computes it by a backend, in files."""
    folder = tmp_path_factory.mktemp(request.param)
    said = infer(folder, "--backend", request.param)
    assert said["runs_on"]["api"] == request.param
    return folder / "dump"


def infer(folder: Path, *arguments: str) -> Any:
    """`farm infer` of the trained network with the authors' input; its outputs lie in `dump`."""
    command = ["infer", str(MODEL), "--input", str(DATA / "input.npy"), "--dump", str(folder / "dump"), "--json"]
    with redirect_stdout(io.StringIO()) as said:
        status = main([*command, "--state", str(folder / "state"), *arguments])
    assert status == 0, said.getvalue()
    return json.loads(said.getvalue())


def agrees_with_caffe(folder: Path) -> None:
    ours = np.load(folder / "prob.npy").reshape(-1)
    caffe = np.load(DATA / "prob.npy").reshape(-1)
    assert np.abs(ours - caffe).max() <= TOLERANCE
    assert np.argsort(-ours)[:5].tolist() == np.argsort(-caffe)[:5].tolist()


def test_this_machine_agrees_with_caffe(here: Path) -> None:
    agrees_with_caffe(here)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_virtual_phone_agrees_with_caffe(tmp_path: Path, phone: str, backend: str) -> None:
    said = infer(tmp_path, "--backend", backend, "--device", phone)
    assert (said["runs_on"]["api"], said["runs_on"]["source"]) == (backend, "virtual")
    agrees_with_caffe(tmp_path / "dump")


def test_every_node_agrees_with_onnxruntime(here: Path) -> None:
    """`--dump` writes each ONNX node's output: none is lost to fusion, and none differs."""
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = onnx.load(MODEL)
    names = [output for node in model.graph.node if node.op_type != "Constant" for output in node.output if output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    data = {session.get_inputs()[0].name: np.load(DATA / "input.npy")}
    index = json.loads((here / "index.json").read_text())
    for name, expected in zip(names, session.run(names, data), strict=True):
        ours = np.load(here / file_of(index, name))
        assert ours.shape == expected.shape, name
        assert ours.dtype == np.float32, name
        error = np.linalg.norm(ours - expected) / max(np.linalg.norm(expected), 1e-30)
        assert error <= 1e-5, f"{name}: relative error {error:.2e}"


def file_of(index: dict[str, Any], name: str) -> str:
    """The file that holds a tensor, by the dump's index."""
    files = index.get("files", index)
    return str(files[name])
