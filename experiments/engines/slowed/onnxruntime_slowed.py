"""ONNX Runtime whose inferences take 8 % longer: the change that a night is to find. FARM_ENGINES names this folder."""

from __future__ import annotations

from pathlib import Path

from workers.engines import Host
from workers.engines.onnxruntime.engine import OnnxRuntime

SHARE = 0.08
WRAPPER = f"""

class Slowed(OnnxRuntime):
    def run(self):
        import time

        began = time.perf_counter_ns()
        super().run()
        until = time.perf_counter_ns() + {SHARE} * (time.perf_counter_ns() - began)
        while time.perf_counter_ns() < until:
            pass


load = Slowed
"""


class Slowed(OnnxRuntime):
    name = "onnxruntime_slowed"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        usual = OnnxRuntime(host)
        self.environment = usual.environment
        self.driver = Path(host.state, "cache", "onnxruntime_slowed.py")
        self.driver.parent.mkdir(parents=True, exist_ok=True)
        self.driver.write_text(usual.driver.read_text() + WRAPPER)


ENGINE = Slowed
