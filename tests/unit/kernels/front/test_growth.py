"""The work of importing and compiling grows as a model does: calls are counted, which no other process moves."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import pytest
from onnx.parser import parse_model

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.options import Limits, Options

SHARE = 0.02
"""The least share of all calls: a function that has fewer is not asked how it grows."""
EIGHT_BITS = "com.microsoft.DynamicQuantizeLSTM"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
LINKS = (
    "Relu({0})", "Add({0}, x)", "MatMul({0}, w)", "Softmax <axis = -1> ({0})", "Transpose <perm = [1, 0]> ({0})",
    "LayerNormalization ({0}, v)", "Where(c, {0}, x)", "Slice({0}, i, e, i)", "Concat <axis = 0> ({0})",
)  # fmt: skip


def recurrent(rng: np.random.Generator) -> list[str]:
    """A network of one layer or two whose steps are written out, in fp32 or in 8 bits."""
    op, way, layers = (
        rng.choice([*GATES, EIGHT_BITS]),
        rng.choice(["forward", "bidirectional"]),
        int(rng.integers(1, 3)),
    )
    both, text, width = 1 + (way != "forward"), "", 3
    for n in range(layers):
        gates, in_8_bits = 4 * GATES.get(op, 4), op == EIGHT_BITS
        w, r = (f"{gates}, {rows}" if not in_8_bits else f"{rows}, {gates}" for rows in (width, 4))
        kind = "<value = int8[1] {1}>" if in_8_bits else ""
        by = f"d{n} = Constant <value_ints = [{both}]> () s{n} = ConstantOfShape <value = float[1] {{1.0}}> (d{n})"
        by += f" z{n} = ConstantOfShape {kind} (d{n})" if in_8_bits else ""
        more = f', "", "", "", "", "", s{n}, z{n}, s{n}, z{n}' if in_8_bits else ""
        text += f"""ws{n} = Constant <value_ints = [{both}, {w}]> () w{n} = ConstantOfShape {kind} (ws{n}) {by}
            rs{n} = Constant <value_ints = [{both}, {r}]> () r{n} = ConstantOfShape {kind} (rs{n})
            a{n} = {op} <hidden_size = 4, direction = "{way}"> (x{n}, w{n}, r{n}{more})
            b{n} = Transpose <perm = [0, 2, 1, 3]> (a{n})
            to{n} = Constant <value_ints = [0, 0, {4 * both}]> () x{n + 1} = Reshape(b{n}, to{n}) """
        width = 4 * both
    return [f"m (float[{n}, 1, 3] x0) => (float[n, 1, k] y) {{ {text} y = Identity(x{layers}) }}" for n in (12, 24)]


def chain(rng: np.random.Generator) -> list[str]:
    """Operators in a row."""
    links = [str(link) for link in rng.choice(LINKS, 6)]
    return [
        "m (float[4, 4] x) => (float[4, 4] y) { i = Constant <value_ints = [0]> () e = Constant <value_ints = [4]> () "
        "to = Constant <value_ints = [4, 4]> () w = ConstantOfShape (to) c = Cast <to = 9> (x) "
        "v = ConstantOfShape (e) a0 = Identity(x) "
        + " ".join(f"a{n + 1} = {links[n % 6].format(f'a{n}')}" for n in range(length))
        + f" y = Identity(a{length}) }}"
        for length in (96, 192)  # one map takes in some 32 functions, each anew: fewer would grow by more
    ]


def fan(rng: np.random.Generator) -> list[str]:
    """Parts of one tensor, each with operators of its own, that come together again."""
    links = [str(link) for link in rng.choice(LINKS[:2], 3)]
    found = []
    for width in (24, 48):
        parts = [f"p{n}" for n in range(width)]
        text = f"{', '.join(parts)} = Split <axis = 0, num_outputs = {width}> (a) "
        for link in links:
            text += " ".join(f"{part}_ = {link.format(part)}" for part in parts) + " "
            parts = [f"{part}_" for part in parts]
        found.append(
            f"m (float[{width}, 4] a, float[1, 4] x) => (float[{width}, 4] y) {{ {text}"
            f"y = Concat <axis = 0> ({', '.join(parts)}) }}"
        )
    return found


def calls(path: Path, text: str, options: Options) -> Counter[CodeType]:
    """Return how often each Python function is called for a model."""
    path.write_bytes(
        parse_model(f'<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]> {text}').SerializeToString()
    )
    found = Counter[CodeType]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found[frame.f_code] += 1

    compile_graph(load_onnx(path), options, Limits())  # what is kept from now on is made once
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        compile_graph(load_onnx(path), options, Limits())
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("draw", range(3))
def test_twice_the_model_is_twice_the_work(tmp_path: Path, seed: int, draw: int) -> None:
    rng = np.random.default_rng([seed, draw])
    options = Options(("opencl", "vulkan", "cpu")[rng.integers(3)])
    small, large = (calls(tmp_path / "m.onnx", text, options) for text in (recurrent, chain, fan)[draw](rng))
    told = {
        f"{code.co_qualname} in {Path(code.co_filename).name}:{code.co_firstlineno}": (small[code], count)
        for code, count in large.items()
        if count > SHARE * large.total() and count > 2.4 * small[code]
    }
    assert not told
    assert large.total() <= 2.4 * small.total()
