"""The farm from Python, against a real farm: on this machine, and through ssh; and the notebooks of the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import onnx
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from onnx import TensorProto, helper

from farm import Farm
from farm.api import CommandFailed
from tests.integration.farm.test_up import ROOT, Up, calm
from tests.servers import required

pytestmark = [pytest.mark.slow, pytest.mark.long]

FILE = """\
schema_version: 1
name: of_a_file
workload: {network: lenet}
devices: {where: source == "virtual", count: any}
matrix: {backend: [cpu]}
sampling: {blocks: 1, samples: 1, load: 0 s}
"""
SAMPLING = {"blocks": 3, "samples": 4, "warmup": 1}
TRIES = 5
"""Other work on this machine may leave a figure of three blocks unresolved, which no notebook draws then."""
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """A server of ssh on this machine, by a key made for it; how to call it."""
    client = required("ssh")
    folder = tmp_path_factory.mktemp("ssh")
    import asyncssh  # a third of a second: each worker reads this file, one runs it

    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(folder / "key")
    (folder / "key").chmod(0o600)
    key.write_public_key(folder / "key.pub")
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("ssh_server.py")), str(folder)]
    options = ("-F", "none", "-i", str(folder / "key"), "-o", "StrictHostKeyChecking=no")
    with subprocess.Popen(command, env=calm(), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        port = server.stdout.readline().strip()
        yield (client, *options, "-o", f"UserKnownHostsFile={folder / 'known'}", "-p", port)
        server.terminate()


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FARM_")]:
        monkeypatch.delenv(name)


def _model() -> onnx.ModelProto:
    """Twice the sum of its two inputs, in an order that is not that of the alphabet."""
    image = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 5, 5]) for name in ("right", "left")]
    nodes = [
        helper.make_node("Add", ["right", "left"], ["sum"]),
        helper.make_node("Add", ["sum", "left"], ["more"]),
    ]
    more = helper.make_tensor_value_info("more", TensorProto.FLOAT, [1, 2, 5, 5])
    graph = helper.make_graph(nodes, "sum", image, [more])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_model_is_inferred_checked_measured_and_read(up: Up) -> None:
    farm = Farm(up.state)
    phone = farm.devices().query("kind == 'phone'").serial.iloc[0]
    random = np.random.default_rng(int.from_bytes(os.urandom(4)))
    right, left = random.normal(size=(2, 1, 2, 5, 5)).astype(np.float32)
    named, expected = {"left": left, "right": right}, lambda left, right: right + 2 * left
    row = farm.check(_model(), named, expected, device=phone, backend="cpu")
    assert row.largest_error.item() < 1e-5 and row.psnr_db.item() > 100

    where = f'serial == "{phone}"'
    for _ in range(TRIES):
        run = farm.profile(_model(), [right, left], where=where, backend=["cpu"], sampling=SAMPLING)
        assert run.wait(progress=False, timeout="4 min").status()["finished"]
        if (result := run.results().iloc[0]).low_ms is not None:
            break
    assert (result.device, result.source, result.blocks) == (phone, "virtual", 3)
    assert result.low_ms <= result.median_ms <= result.high_ms
    page = run.report().html
    assert page.startswith("<!") and phone in page
    assert run.plot().figure.axes[0].get_yticklabels()[0].get_text().endswith("(virtual)")
    assert farm.experiment().id == run.id in set(farm.experiments().experiment)
    assert run.cancel() == []


def test_a_farm_of_another_machine_takes_models_and_gives_outputs_and_samples(
    up: Up, ssh: tuple[str, ...], tmp_path: Path
) -> None:
    farm = Farm(up.state, host="127.0.0.1", command=f"env PYTHONPATH={ROOT} {sys.executable} -m farm.cli", ssh=ssh)
    right, left = np.random.default_rng(int.from_bytes(os.urandom(4))).normal(size=(2, 1, 2, 5, 5)).astype(np.float32)
    found = farm.infer(_model(), [right, left], backend="cpu")
    np.testing.assert_allclose(found.outputs["more"], right + 2 * left, rtol=1e-5, atol=1e-6)
    assert found.facts["runs_on"]["source"] == "workstation"
    run = farm.profile(_model(), [right, left], where='source == "virtual"', backend="cpu", sampling=SAMPLING)
    timed = run.wait(progress=False).samples().query("phase == 'timed'")
    assert len(timed) == 12 and (timed.sample_ms > 0).all()
    (tmp_path / "of_a_file.yaml").write_text(FILE)
    assert farm.run(tmp_path / "of_a_file.yaml").status()["jobs"] == 1
    with pytest.raises(CommandFailed, match="there is no experiment 'nothing'") as failed:
        farm.experiment("nothing")
    assert failed.value.cause == "unknown_name" and failed.value.remedy


def test_a_host_that_is_away_is_named() -> None:
    farm = Farm(host="127.0.0.1", ssh=(required("ssh"), "-F", "none", "-p", "1"))
    with pytest.raises(CommandFailed, match=r"127\.0\.0\.1 cannot be reached"):
        farm.devices()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_examples_runs(notebook: Path, up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_STATE", str(up.state))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for left in reversed(range(TRIES)):
        page = nbformat.read(notebook, as_version=4)
        try:
            NotebookClient(page, timeout=250, kernel_name="python3").execute()
            break
        except CellExecutionError as e:
            if not left or "no result has the figure" not in str(e):
                raise
    code = [cell for cell in page.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    shown = {kind for cell in code for output in cell.outputs for kind in output.get("data", {})}
    assert "text/html" in shown and ("image/svg+xml" in shown) == (notebook.stem == "measure")
