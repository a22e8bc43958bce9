"""onnxruntime's attention of projected parts, with older keys, shared heads and places turned into angles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx

from .onnx_models import save_model
from .test_written import agrees, own, with_domain

Array = np.ndarray[Any, Any]
B, S, KEYS, HEADS, SIZE, OLD = 2, 3, 7, 4, 16, 5
WIDE = HEADS * SIZE
ALL = "out key value"
CROSS = {"q": (B, S, WIDE), "k": (B, KEYS, WIDE), "v": (B, KEYS, WIDE)}
OWN = dict.fromkeys("qkv", (B, S, WIDE))
IN_HEADS = {"q": (B, S, WIDE), "k": (B, HEADS, KEYS, SIZE), "v": (B, HEADS, KEYS, SIZE)}
PAST = dict.fromkeys(("old_k", "old_v"), (B, HEADS, OLD, SIZE))
MULTI = {
    "plain": ("q k v", CROSS, {"scale": 0.3}),
    "bias": ("q k v bias", CROSS, {}),
    "in heads": ("q k v bias", IN_HEADS, {}),
    "mask": ("q k v - mask", CROSS, {"mask_filter_value": -500.0}),
    "mask of each step": ("q k v - each", CROSS, {}),
    "lengths": ("q k v - many", CROSS, {}),
    "scores": ("q k v - - scores", CROSS | {"scores": (1, HEADS, S, KEYS)}, {}),
    "causal": ("q k v", OWN, {"unidirectional": 1}),
    "past": ("q k v bias - - old_k old_v", OWN | PAST, {"unidirectional": 1}),
}  # fmt: skip


def mask_of(rng: np.random.Generator, *shape: int) -> Array:
    """Return which keys may be seen: the first one, and some others."""
    mask = (rng.random(shape) < 0.6).astype(np.int32)
    mask[..., 0] = 1
    return mask


def written(path: Path, nodes: list[onnx.NodeProto], given: dict[str, Array], stored: dict[str, Array]) -> Path:
    used = {name for node in nodes for name in node.input}
    shapes = {name: value.shape for name, value in given.items()}
    outputs = [name for name in nodes[-1].output if name]
    return with_domain(save_model(path, nodes, shapes, outputs, {k: v for k, v in stored.items() if k in used}))


@pytest.mark.parametrize("case", MULTI)
def test_attention_of_projected_parts(tmp_path: Path, seed: int, case: str) -> None:
    rng = np.random.default_rng(seed)
    names, shapes, attributes = MULTI[case]
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    stored = {"bias": rng.standard_normal(3 * WIDE).astype(np.float32), "many": np.array([3, KEYS], np.int32)}
    stored |= {"mask": mask_of(rng, B, KEYS), "each": mask_of(rng, B, S, KEYS)}
    node = own("MultiHeadAttention", names, ALL if "old_k" in given else "out", num_heads=HEADS, **attributes)
    agrees(written(tmp_path / "m.onnx", [node], given, stored), given)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [True, False], ids=["past", "scores"])
def test_attention_with_what_came_before(tmp_path: Path, seed: int, past: bool, causal: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = {"x": (B, S, 12)} | ({"past": (2, B, HEADS, OLD, 3)} if past else {"added": (B, HEADS, S, S)})
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    stored = {"wide": rng.standard_normal((12, 36)).astype(np.float32)}
    stored |= {"bias": rng.standard_normal(36).astype(np.float32)}
    stored |= {"mask": mask_of(rng, B, OLD + S)}
    names = "x wide bias mask past" if past else "x wide bias - - added"
    node = own("Attention", names, "out present", num_heads=HEADS, unidirectional=causal)
    agrees(written(tmp_path / "m.onnx", [node], given, stored), given)


@pytest.mark.parametrize("causal", [0, 1])
def test_a_query_whose_keys_are_all_masked_looks_at_these_alone(tmp_path: Path, seed: int, causal: int) -> None:
    """It never looks at later ones. -10000 was added to its scores, which rounds them to 1e-3."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (B, S, 12), "past": (2, B, HEADS, OLD, 3)}
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    stored = {"wide": rng.standard_normal((12, 36)).astype(np.float32), "bias": np.zeros(36, np.float32)}
    stored["mask"] = mask_of(rng, B, OLD + S)
    stored["mask"][0, : OLD + S - int(rng.integers(S))] = 0
    node = own("Attention", "x wide bias mask past", "out present", num_heads=HEADS, unidirectional=causal)
    agrees(written(tmp_path / "m.onnx", [node], given, stored), given, tolerance=2e-3)


@pytest.mark.parametrize("flat", [True, False], ids=["flat", "heads"])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [SIZE, SIZE // 2])
def test_places_turned_into_angles(tmp_path: Path, seed: int, flat: bool, interleaved: int, turned: int) -> None:
    """Angles turn all numbers of a head or its first ones; there is a place for each step, or the first step's."""
    rng = np.random.default_rng(seed)
    angles = rng.standard_normal((20, turned // 2)).astype(np.float32)
    stored = {"cos": np.cos(angles), "sin": np.sin(angles)}
    stored["at"] = np.array([4]) if interleaved else rng.integers(0, 20, (B, S))
    partly = {"rotary_embedding_dim": turned} if turned < SIZE else {}
    node = own("RotaryEmbedding", "x at cos sin", interleaved=interleaved, num_heads=HEADS, **partly)
    shape = (B, S, WIDE) if flat else (B, HEADS, S, SIZE)
    given = {"x": rng.standard_normal(shape).astype(np.float32)}
    agrees(written(tmp_path / "m.onnx", [node], given, stored), given)


GROUPED: dict[str, tuple[int, int, int, list[int], dict[str, Any]]] = {
    "prompt": (B, S, 0, [2, 2], {"scale": 0.3, "softcap": 2.0}),
    "padded prompt": (B, S, 0, [1, 2], {"do_rotary": 1, "rotary_interleaved": 1}),
    "sinks": (B, S, 0, [2, 2], {"sink": True}),
    "window": (1, 6, 0, [5], {"local_window_size": 3, "smooth_softmax": 1}),
    "step": (1, 1, OLD, [OLD], {"do_rotary": 1, "local_window_size": 2}),
    "lengths that differ": (B, 1, OLD, [2, OLD], {"do_rotary": 1}),
    "several steps": (1, S, OLD, [OLD + 2], {"do_rotary": 1, "packed": True, "bias": True}),
    "room for more": (1, 1, 9, [4], {"do_rotary": 1, "places": True}),
    "prompt with room": (1, S, 9, [2], {"do_rotary": 1}),
}
"""Cases by name: batch, steps, older rows, the last valid key of each batch, and further attributes and inputs."""


@pytest.mark.parametrize("computed", [True, False], ids=["computed", "constant"])
@pytest.mark.parametrize("case", GROUPED)
def test_heads_that_share_keys(tmp_path: Path, seed: int, case: str, computed: bool) -> None:
    """The number of valid keys is an input of the model, or a constant."""
    rng, shared = np.random.default_rng(seed), 2
    batch, steps, old, ends, attributes = (*GROUPED[case][:4], dict(GROUPED[case][4]))
    packed, places, bias, sink = (attributes.pop(key, False) for key in ("packed", "places", "bias", "sink"))
    keys = max(ends) + 1
    shapes: dict[str, tuple[int, ...]] = {"q": (batch, steps, WIDE)}
    shapes |= dict.fromkeys("kv", (batch, steps, shared * SIZE))
    if packed:
        shapes = {"q": (batch, steps, WIDE + 2 * shared * SIZE)}
    shapes |= dict.fromkeys(("old_k", "old_v"), (batch, shared, old, SIZE)) if old else {}
    shapes |= {"bias": (1, 1, steps, keys)} if bias else {}
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    angles = rng.standard_normal((20, SIZE // 2)).astype(np.float32)
    stored = {"cos": np.cos(angles), "sin": np.sin(angles), "total": np.int32(keys), "at": rng.integers(0, 20, (1, 1))}
    stored |= {"sink": rng.standard_normal(HEADS).astype(np.float32), "ends": np.array(ends, np.int32)}
    wanted = ["q", *("" if packed else name for name in "kv"), *(["old_k", "old_v"] if old else ("", ""))]
    wanted += ["ends", "total", *(("cos", "sin") if attributes.get("do_rotary") else ("", ""))]
    wanted += ["at" if places else "", "bias" if bias else "", "sink" if sink else ""]
    node = helper.make_node(
        "GroupQueryAttention", wanted, ["out", "key", "value"], domain="com.microsoft", num_heads=HEADS,
        kv_num_heads=shared, **attributes,
    )  # fmt: skip
    nodes = [node]
    if computed:
        del stored["ends"]
        given["last"] = np.array(ends, np.float32)
        nodes.insert(0, helper.make_node("Cast", ["last"], ["ends"], to=TensorProto.INT32))
    agrees(written(tmp_path / "m.onnx", nodes, given, stored), given)


def test_a_length_that_nothing_fixes_is_told(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["last"], ["ends"], to=TensorProto.INT32),
        own("GroupQueryAttention", "q k v - - ends ends", "out key value", num_heads=HEADS, kv_num_heads=HEADS),
    ]
    nodes[1].input[3] = nodes[1].input[4] = ""
    given = {name: np.zeros((1, S, WIDE), np.float32) for name in "qkv"} | {"last": np.zeros(1, np.float32)}
    path = written(tmp_path / "m.onnx", nodes, given, {})
    with pytest.raises(UnsupportedNode, match=r"GroupQueryAttention .*fix the sizes of all inputs"):
        load_onnx(path)
