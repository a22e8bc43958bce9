"""Networks of the zoo as files, for `python -m benchmarks.engine --onnx FOLDER`, which then needs no PyTorch.

    python -m benchmarks.engine.zoo.files --networks lstm,vit_b_16 [--exporter legacy] FOLDER

Beside each ONNX file lie two random inputs and what PyTorch makes of them in double precision (`case.read_case`).
Weights and inputs are drawn anew; a network whose file is there is left out.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

import numpy as np
import onnx

from benchmarks.command_line import run_command
from benchmarks.engine.case import INPUTS, inputs_file, model_file, wanted_file


def write_case(name: str, exporter: str, folder: Path) -> None:
    """Export one network; its ONNX file is the last to appear."""
    import torch

    from .modules import make

    seed = secrets.randbelow(1 << 31)
    module, inputs = make(name, 1, seed)
    given = [inputs, *(make(name, 1, seed + 1 + index)[1] for index in range(INPUTS - 1))]
    file, fresh = model_file(folder, name), model_file(folder, name).with_suffix(".new")
    torch.onnx.export(module, inputs, str(fresh), dynamo=exporter == "dynamo", verbose=False)
    graph = onnx.load(fresh, load_external_data=False).graph
    module = module.double()
    for index, tensors in enumerate(given):
        with torch.no_grad():
            found = module(*(x.double() if x.is_floating_point() else x for x in tensors))
        outputs = (found,) if isinstance(found, torch.Tensor) else found
        for path, ports, values in (
            (inputs_file(folder, name, index), graph.input, tensors),
            (wanted_file(folder, name, index), graph.output, outputs),
        ):
            named = {port.name: x.numpy() for port, x in zip(ports, values, strict=True)}
            np.savez(path, **named)  # type: ignore[arg-type]
    fresh.rename(file)


def main() -> int:
    """Export; 1 where an exporter failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", required=True, help="names of the zoo, with commas")
    parser.add_argument("--exporter", choices=("legacy", "dynamo"), default="legacy")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in arguments.networks.split(","):
        if model_file(arguments.folder, name).exists():
            continue
        try:
            write_case(name, arguments.exporter, arguments.folder)
        except Exception as e:  # whatever an exporter raises: the others are still written
            print(f"{name}: {type(e).__name__}: {e}"[:400], file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    run_command(main)
