"""The farm from a notebook: the words of the command line, answers as tables of pandas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import SecretStr

from client.spec_files import with_files
from farm.endpoints import Login
from orchestrator.model.errors import ModelFileError

from .command_line import CommandFailed, CommandLine, Option
from .experiment import Experiment, table_of
from .here import Here
from .model_files import Inputs, Model, network_of, write_inputs, write_model

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

BACKENDS = ("opencl", "vulkan", "cpu")


@dataclass(frozen=True)
class Inference:
    """The outputs of one inference, and what it took."""

    outputs: dict[str, npt.NDArray[Any]]
    facts: dict[str, Any]
    """The answer of `farm infer --json`: time of the first inference, set-up steps, memory, device, driver, plan."""


class Farm:
    """A farm of this machine, or of another one that ssh or HTTP reaches; its methods raise CommandFailed.

    `state` may be an address, with a `token` (and the authority's certificate `ca`), as of `pocketfarm_client.Farm`.
    `state`: its state folder (FARM_STATE or .farm). `host`: as ssh calls the machine. `command`: the farm's command
    there, such as `/srv/pocketfarm/.venv/bin/farm`. `ssh`: how to call it, e.g. `("ssh", "-p", "2222")`.
    """

    def __init__(
        self,
        state: str | PathLike[str] = "",
        *,
        host: str = "",
        command: str = "farm",
        ssh: Sequence[str] = ("ssh",),
        token: str = "",
        ca: str | PathLike[str] | None = None,
    ) -> None:
        if str(state).startswith(("http://", "https://")):
            login = Login(url=str(state), token=SecretStr(token), ca=Path(ca) if ca else None)
            self.at: CommandLine = Here(login=login)
        else:
            self.at = (CommandLine if host else Here)(str(state), host, command, tuple(ssh))

    def devices(self) -> pd.DataFrame:
        """A row for each device: what it is, what it says of itself, whether it takes work."""
        import pandas as pd

        return pd.DataFrame([{**each["facts"], **each["state"]} for each in self.at.devices()])

    def experiments(self) -> pd.DataFrame:
        """A row for each experiment of the ledger."""
        import pandas as pd

        found = pd.DataFrame(self.at.experiments())
        return found.assign(
            submitted_at=pd.to_datetime(found.get("submitted_at", pd.Series(dtype=float)), unit="s", utc=True)
        )

    def experiment(self, name: str = "latest") -> Experiment:
        """Return the experiment of an id or a name (the newest), or the newest of all."""
        return Experiment(self.at.status(name)["experiment"], self.at)

    def run(self, spec: str | PathLike[str] | Mapping[str, Any], *, again: bool = False) -> Experiment:
        """Submit an experiment: a YAML file, or what such a file holds. Its files are relative to it, or to here.

        The same content is the same experiment: one that is not over is gone on with, unless `again`.
        """
        if isinstance(spec, Mapping):
            return self._send(spec, Path.cwd(), again)
        if not self.at.host:
            return self._submit(str(spec), again)
        from orchestrator.spec import load, yaml_tree

        load(Path(spec))  # what is wrong with it is told by its own lines
        return self._send(yaml_tree.read(Path(spec).read_text()).data, Path(spec).parent, again)

    def _send(self, spec: Mapping[str, Any], base: Path, again: bool) -> Experiment:
        """The experiment and its files, in a folder of their own where the farm is."""
        with TemporaryDirectory() as scratch:
            file = Path(scratch) / "experiment.yaml"
            named, files = with_files(spec, base)
            for path in files.values():
                if not path.exists():
                    raise ModelFileError(f"there is no file {path}", remedy=f"paths are relative to {base}")
            file.write_text(json.dumps(named))
            with self.at.folder({**files, file.name: file}) as folder:
                sent = f"{folder}/{file.name}"
                try:
                    return self._submit(sent, again)
                except CommandFailed as e:  # nobody has seen that file, nor its lines
                    text = re.sub(re.escape(sent) + r":\d+:\d+: ", "", str(e.args[0]))
                    e.args = (text.replace(sent, "the experiment"), *e.args[1:])
                    raise

    def _submit(self, file: str, again: bool) -> Experiment:
        return Experiment(self.at.submit(file, again=again), self.at)

    def profile(
        self,
        model: Model,
        inputs: Inputs | None = None,
        *,
        where: str | None = None,
        count: int | str = "all",
        backend: str | Sequence[str] = BACKENDS,
        precision: str | Sequence[str] = ("fp32",),
        quantities: str | Sequence[str] = ("latency", "memory"),
        name: str = "profile",
        **more: Any,
    ) -> Experiment:
        """Measure a model on the farm's devices: an ONNX file, a built-in network, a PyTorch module.

        `where`, `count`: which devices, as in an experiment's file. `more`: further parts of it, such as
        `sampling={"blocks": 10}` or `conditions={"supply": "cut"}`. With `matrix={"batch": [1, 4], ...}` a module is
        exported for any batch, and measured with inputs that are drawn at random.
        """
        with TemporaryDirectory() as scratch:
            any_batch = "batch" in more.get("matrix", {})
            workload = self._workload(model, inputs, Path(scratch), any_batch=any_batch)
            devices = {"count": count, **({"where": where} if where else {})}
            matrix = {"backend": _several(backend), "precision": _several(precision)}
            spec = {"schema_version": 1, "name": name, "workload": workload, "devices": devices, "matrix": matrix}
            return self.run({**spec, "measure": {"quantities": _several(quantities)}, **more})

    def _workload(
        self, model: Model, inputs: Inputs | None, folder: Path, *, any_batch: bool = False
    ) -> dict[str, str]:
        network = network_of(model)
        file = None if network else write_model(model, inputs, folder, any_batch=any_batch)
        workload = {"network": network} if network else {"onnx": str(file)}
        if inputs is not None and not (any_batch and hasattr(model, "state_dict")):  # they are of one batch
            write_inputs(inputs, file, network, folder / "input.npz")
            workload["input"] = str(folder / "input.npz")
        return workload

    def infer(self, model: Model, inputs: Inputs | None = None, **options: Option) -> Inference:
        """Run one inference, and return its outputs. Options as of `farm infer`: device, backend, precision ..."""
        with TemporaryDirectory() as scratch, ExitStack() as stack:
            made = self._workload(model, inputs, Path(scratch))
            network = made.pop("network", None)
            there = stack.enter_context(self.at.folder({Path(file).name: Path(file) for file in made.values()}))
            own = {key: f"{there}/{Path(file).name}" for key, file in made.items()}
            words = [own["onnx"]] if "onnx" in own else []
            results = stack.enter_context(self.at.folder())
            facts = self.at.answer("infer", *words, network=network, input=own.get("input"), outputs=results, **options)
            self.at.fetch(results, Path(scratch) / "outputs")
            return Inference(_arrays(Path(scratch) / "outputs"), facts)

    def check(
        self, model: Model, inputs: Inputs, expected: Inputs | Callable[..., Any] | None = None, **options: Option
    ) -> pd.DataFrame:
        """Compare a device's outputs with what is expected, a row an output: largest error, PSNR, same prediction.

        `expected`: the right outputs in their order, or by name, or what computes them from the inputs; none: the
        model itself, where it is a PyTorch module. Options as of `infer`.
        """
        from .outputs import compare_outputs, right_outputs

        return compare_outputs(self.infer(model, inputs, **options).outputs, right_outputs(model, inputs, expected))

    def compare(self, a: str | Experiment, b: str | Experiment | None = None, **options: Option) -> pd.DataFrame:
        """`farm compare`: a row for each device, configuration and metric with ratio, interval and verdict.

        Two experiments, or one with `sides="backend=opencl,vulkan"`.
        """
        names = [each.id if isinstance(each, Experiment) else each for each in (a, b) if each is not None]
        return table_of(self.at.answer("compare", *names, **options))

    def command(self, *words: str, **options: Option) -> Any:
        """Any other command of `farm`: what it answers with --json, e.g. `command("hold", "phone-3", for_="2 h")`."""
        return self.at.answer(*words, **options)

    def __repr__(self) -> str:
        return f"Farm({self.at.state!r}, host={self.at.host!r})"


def _arrays(folder: Path) -> dict[str, npt.NDArray[Any]]:
    named = json.loads((folder / "index.json").read_text())
    return {name: np.load(folder / file, allow_pickle=False) for name, file in named.items()}


def _several(named: str | Sequence[str]) -> list[str]:
    """One name is a list of one."""
    return [named] if isinstance(named, str) else list(named)
