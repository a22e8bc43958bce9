"""OpenVINO: its CPU plug-in, in fp32 unless a precision is asked for."""

from __future__ import annotations

from workers.engines.packaged import PackagedEngine


class OpenVino(PackagedEngine):
    name = package = "openvino"


ENGINE = OpenVino
