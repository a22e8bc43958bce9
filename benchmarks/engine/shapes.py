"""Study M's 35 layer shapes through OpenCL: every algorithm and tile, beside cuDNN in the same run.

    python -m benchmarks.engine.shapes [--shapes 0,5,9] [--algorithms implicit_gemm,winograd] [-o raw.json]

Needs pyopencl and, for the reference and cuDNN, PyTorch with CUDA. Times are device times from profiling events, the
least of three; the best of each algorithm is compared with a double precision convolution of the same random input.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from benchmarks.command_line import run_command
from kernels.catalog.convolution import ALGORITHMS, Convolution
from kernels.catalog.family import Call
from kernels.frontend.networks.pynet_layers import SHAPES
from kernels.options import Limits, Options
from kernels.source.dialects import opencl

REPEATS = 3


class Device:
    """One OpenCL device with its built programs."""

    def __init__(self) -> None:
        self.device = next(device for found in cl.get_platforms() for device in found.get_devices())
        self.context = cl.Context([self.device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.limits = Limits(
            max_buffer_bytes=min(self.device.max_mem_alloc_size, 4 << 30),
            local_bytes=self.device.local_mem_size,
            max_work_group=self.device.max_work_group_size,
            unified_memory=bool(self.device.host_unified_memory),
            compute_units=self.device.max_compute_units,
        )
        self._kernels: dict[object, Any] = {}

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(array, np.float32))

    def buffer(self, size: int) -> Any:
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)

    def kernel(self, call: Call, group: int) -> Any:
        constants = {**call.tile.constants, **call.switches}
        key = (call.kernel.name, tuple(sorted(constants.items())), group)
        if key not in self._kernels:
            text = opencl.render(call.kernel, constants)
            words = opencl.build_options((group, 1, 1), version="1.2").split()
            self._kernels[key] = cl.Kernel(cl.Program(self.context, text).build(options=words), call.kernel.name)
        return self._kernels[key]


def dispatches(device: Device, conv: Convolution, calls: Sequence[Call], buffers: dict[str, Any]) -> list[Any]:
    """Kernel, sizes and arguments of each call; scratch buffers are made where they are first written."""
    plain = {
        "src_stacks": conv.in_stacks, "src_stack0": 0, "dst_stacks": conv.out_stacks, "dst_stack0": 0,
        "residual_stacks": 0, "residual_stack0": 0, "has_residual": 0, "activation": 0,
    }  # fmt: skip
    out = []
    for call in calls:
        if call.writes not in buffers:
            buffers[call.writes] = device.buffer(4 * call.scratch_elements)
        named = {"src": buffers[call.reads], "dst": buffers[call.writes], "residual": buffers[call.reads]}
        named |= {"weight": device.upload(call.weight)} if call.weight is not None else {}
        named |= {"bias": device.upload(call.bias)} if call.bias is not None else {}
        ints: Mapping[str, int] = {**plain, **call.ints}
        arguments = [
            named[p.name] if p.kind == "buffer" else np.int32(ints[p.name]) if p.kind == "i32" else np.float32(0)
            for p in call.kernel.parameters
        ]
        group = call.group or 64
        whole = (-(-call.work_items[0] // group) * group, *call.work_items[1:])
        out.append((device.kernel(call, group), whole, (group, 1, 1), arguments))
    return out


def least_ms(device: Device, steps: Sequence[Any]) -> list[float]:
    """Of the repetitions, the one with the least sum: ms of each step."""
    runs = []
    for _ in range(REPEATS):
        events = []
        for kernel, whole, group, arguments in steps:
            kernel.set_args(*arguments)
            events.append(cl.enqueue_nd_range_kernel(device.queue, kernel, whole, group))
        device.queue.finish()
        runs.append([(event.profile.end - event.profile.start) / 1e6 for event in events])
    return min(runs, key=sum)


def cudnn(x: Any, w: Any, b: Any, pad: int) -> tuple[float, Any]:
    """Least ms of cuDNN in single precision, and the result in double precision."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    tensors = [torch.from_numpy(array).cuda() for array in (x[None], w, b)]
    times = []
    for _ in range(6):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.nn.functional.conv2d(*tensors, padding=pad)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    wide = [tensor.double() for tensor in tensors]
    return min(times[2:]), torch.nn.functional.conv2d(*wide, padding=pad)[0].cpu().numpy()


def measure(device: Device, number: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """Every algorithm and tile on one shape."""
    c, h, w, window, k = SHAPES[number]
    rng = np.random.default_rng()
    x = rng.standard_normal((c, h, w), dtype=np.float32)
    weight = rng.standard_normal((k, c, window, window), dtype=np.float32) / np.float32(np.sqrt(c * window * window))
    bias = rng.standard_normal(k).astype(np.float32)
    cudnn_ms, wanted = cudnn(x, weight, bias, window // 2)
    conv = Convolution(1, c, h, w, k, h, w, (window, window), (1, 1), (window // 2,) * 4, (1, 1), 1)
    full = np.zeros((4 * conv.in_stacks, h, w), np.float32)
    full[:c] = x
    ends = {
        "src": device.upload(full.reshape(-1, 4, h * w).transpose(0, 2, 1)),
        "dst": device.buffer(16 * conv.out_stacks * h * w),
    }
    found = []
    for name in names:
        algorithm = ALGORITHMS[name]
        if algorithm.why_not(conv, Options("opencl"), device.limits):
            continue
        timed = []
        for tile in algorithm.tiles(conv, Options("opencl"), device.limits):
            calls = algorithm.lower(conv, {"weight": weight, "bias": bias}, Options("opencl"), device.limits, tile)
            timed.append((least_ms(device, dispatches(device, conv, calls, dict(ends))), tile, calls))
        best = min(timed, key=lambda one: sum(one[0]))
        cl.enqueue_fill_buffer(device.queue, ends["dst"], np.float32("nan"), 0, 16 * conv.out_stacks * h * w)
        least_ms(device, dispatches(device, conv, best[2], dict(ends)))
        got = np.empty((conv.out_stacks, h * w, 4), np.float32)
        cl.enqueue_copy(device.queue, got, ends["dst"])
        got = got.transpose(0, 2, 1).reshape(-1, h, w)[:k]
        error = float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))
        found += [
            {"shape": number, "algorithm": name, "tile": tile, "ms": ms, "cudnn_ms": cudnn_ms, "flops": conv.flops}
            | ({"error": error} if tile == best[1] else {})
            for ms, tile, _ in timed
        ]
        print(f"{number:2} {name:14} {best[1]:16} {sum(best[0]):8.2f} ms  cuDNN {cudnn_ms:8.2f} ms  error {error:.1e}")
    return found


def main() -> None:
    """Measure and print; exit status 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=",".join(map(str, range(len(SHAPES)))))
    parser.add_argument("--algorithms", default="implicit_gemm,winograd")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    device = Device()
    found: list[dict[str, Any]] = []
    for number in map(int, arguments.shapes.split(",")):
        found += measure(device, number, arguments.algorithms.split(","))
    best: dict[int, float] = {}
    for one in found:
        best[one["shape"]] = min(best.get(one["shape"], float("inf")), sum(one["ms"]))
    theirs = sum({one["shape"]: one["cudnn_ms"] for one in found}.values())
    print(f"in all: best of ours {sum(best.values()):.1f} ms, cuDNN {theirs:.1f} ms")
    if arguments.output:
        about = {
            "device": device.device.name,
            "driver": device.device.driver_version,
            "python": platform.python_version(),
        }
        arguments.output.write_text(json.dumps({"about": about, "at": time.time(), "results": found}))


if __name__ == "__main__":
    run_command(main)
