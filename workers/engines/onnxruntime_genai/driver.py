"""Drive ONNX Runtime GenAI."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai as genai

DEVICE = "CPU"


class Genai:
    version = version("onnxruntime-genai")

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        genai.disable_telemetry_events()
        threads = {"intra_op_num_threads": settings["threads"], "inter_op_num_threads": 1}
        config = genai.Config(str(Path(files["model.onnx"]).parent))
        config.overlay(json.dumps({"model": {"decoder": {"session_options": threads}}}))
        self._model = genai.Model(config)
        if self._model.device_type != DEVICE:
            raise RuntimeError(f"it runs on {self._model.device_type}, and {DEVICE} was asked for")
        self.device, self.threads = DEVICE, settings["threads"]
        self.remarks: list[str] = []
        self._parameters = genai.GeneratorParams(self._model)

    def begin(self, tokens: Any) -> None:
        self._generator: Any = None  # its cache is let go before the next is made
        self._generator = genai.Generator(self._model, self._parameters)
        if len(tokens):
            self.take(tokens)

    def take(self, tokens: Any) -> None:
        self._generator.append_tokens(np.asarray(tokens, np.int32))

    def next(self) -> int:
        self._generator.generate_next_token()
        return int(self._generator.get_next_tokens()[0])

    def get(self) -> dict[str, Any]:
        return {}


load = Genai
