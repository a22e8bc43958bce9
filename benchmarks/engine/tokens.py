"""Tokens of a random Llama on our engine: the time of each behind several contexts, and how fast it reads.

    python -m benchmarks.engine.tokens --precisions fp16 --model 0.5b --contexts 128,1024 [-o raw.json]

A token reads the weights of its pass and the valid part of the cache: these bytes, counted from the plan, over the
median time between two tokens, stand beside the bandwidth of a copy that is measured by the same agent. The prompt has
a time of its own. Weights are random halves, or packed blocks (`--weights q4_0`), in a GGUF file; the tokens that come
out mean nothing, and are not compared (`tests/contract/agent/test_generation.py` does). `--torch` times PyTorch's CUDA
graph in the same run. Needs numpy, pydantic, onnx, gguf and the agent; for Vulkan glslc, or compiled shaders.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command_line import FAILED, run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.caches import cache_environment
from benchmarks.engine.contender import ContenderError
from benchmarks.engine.machine import describe_machine
from benchmarks.engine.ours import find_device
from kernels.compile import compile_generation, compile_graph
from kernels.errors import CompileError
from kernels.frontend.load import load_decoder
from kernels.ir.decoder import DecoderStep
from kernels.ir.graph import Graph, Node
from kernels.ir.packed import FORMATS, random_matrix
from kernels.options import Limits, Options
from kernels.plan.model import Bundle, Dispatch, Pass, Plan
from kernels.plan.steps import touched

_BLOCK = 1 << 22
"""Random numbers that are drawn; each tensor begins elsewhere in them."""
_LIMIT_S = 560.0


@dataclass(frozen=True)
class Model:
    """Sizes of a Llama, whose heads have `size` numbers."""

    layers: int
    width: int
    heads: int
    shared: int
    size: int
    inner: int
    words: int


MODELS = {
    "tiny": Model(2, 256, 8, 2, 32, 512, 1024),
    "0.5b": Model(24, 896, 14, 2, 64, 4864, 32000),
    "1b": Model(16, 2048, 32, 8, 64, 8192, 128256),
}
"""The smallest is for a try; the others have the sizes of Qwen 2.5 0.5B, with fewer words, and of Llama 3.2 1B."""


def write_model(path: Path, model: Model, context: int, kind: str = "f16") -> None:
    """Write a GGUF file with random weights, whose products keep the size of their rows: halves, or blocks of a format;
    rows that are no whole blocks of it are Q8_0."""
    import gguf

    writer, m = gguf.GGUFWriter(path, "llama"), model
    facts = {
        "block_count": m.layers, "context_length": context, "embedding_length": m.width, "feed_forward_length": m.inner,
        "attention.head_count": m.heads, "attention.head_count_kv": m.shared, "attention.key_length": m.size,
        "attention.value_length": m.size, "vocab_size": m.words, "rope.dimension_count": m.size,
    }  # fmt: skip
    for key, value in facts.items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32("llama.rope.freq_base", 5e5)
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    heads, shared = m.heads * m.size, m.shared * m.size
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (m.words, m.width), "output": (m.words, m.width)}
    for layer in range(m.layers):
        own = {"attn_q": (heads, m.width), "attn_k": (shared, m.width), "attn_v": (shared, m.width)}
        own |= {"attn_output": (m.width, heads), "ffn_gate": (m.inner, m.width), "ffn_up": (m.inner, m.width)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in {**own, "ffn_down": (m.width, m.inner)}.items()}
    rng = np.random.default_rng()
    drawn = rng.standard_normal(_BLOCK, dtype=np.float32)
    for index, (name, shape) in enumerate(shapes.items()):
        if kind != "f16":
            packed = FORMATS[kind.upper()]
            packed = FORMATS["Q8_0"] if shape[1] % packed.block else packed
            data = random_matrix(packed, shape[1], shape[0], rng).data
            writer.add_tensor(f"{name}.weight", data, raw_dtype=gguf.GGMLQuantizationType[packed.name])
            continue
        turned = np.roll(drawn, 7919 * (index + 1)) * np.float32(1 if "embd" in name else shape[-1] ** -0.5)
        writer.add_tensor(f"{name}.weight", np.resize(turned.astype(np.float16), shape))
    norms = ["output_norm", *(f"blk.{n}.{word}" for n in range(m.layers) for word in ("attn_norm", "ffn_norm"))]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.abs(drawn[: m.width]) + np.float32(0.5))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def bytes_of(plan: Plan, each: Pass, context: int) -> tuple[int, int]:
    """Return the bytes of weights that a pass of one token reads, and those of the cache that are valid; a table from
    which rows are taken counts by its rows."""
    assert plan.generation is not None
    buffers, weights, cache, rows = {b.id: b for b in plan.buffers}, dict[str, int](), dict[str, int](), 0
    programs = {program.id: program.kernel for program in plan.programs}
    for step in plan.steps[each.begin : each.end]:
        takes_rows = isinstance(step, Dispatch) and programs[step.program].startswith("gather")
        rows += step.bytes if takes_rows and isinstance(step, Dispatch) else 0
        for name in () if takes_rows else touched(step):
            kept = {"weight": weights, "variable": cache}.get(buffers[name].role)
            if kept is not None:
                kept[name] = buffers[name].bytes
    return rows + sum(weights.values()), sum(cache.values()) * (context + 1) // plan.generation.capacity


def copy_bandwidth(agent: Agent, limits: Limits, api: str, device: str, mebibytes: int, caches: Path) -> float:
    """Return GB/s, read and written, of a kernel that copies fp32 with its activation, by the host's clock.

    The device copies for a second first: an idle GPU begins at a fraction of its clock.
    """
    shape = (1, 4, mebibytes << 4, 4096)  # one stack of channels: neighbours in memory are neighbours in a work-group
    graph = Graph("copy", ("x",), ("y",), [Node("copy", "relu", ("x",), ("y",))], {"x": shape, "y": shape}, {})
    bundle = compile_graph(graph, Options(api), limits, spirv_cache=caches / "spirv")  # type: ignore[arg-type]
    x = np.resize(np.random.default_rng().standard_normal(_BLOCK, dtype=np.float32), shape)
    with tempfile.TemporaryDirectory(prefix="copy-") as name:
        bundle.write(Path(name))
        ran = agent.run_stored(
            bundle.plan, Path(name), {"x": x}, samples=30, load_ms=1000, device=device, limit_s=_LIMIT_S
        )
    return 2 * x.nbytes / float(np.median(ran.samples_ms[-15:])) / 1e6


def timed(agent: Agent, folder: Path, bundle: Bundle, context: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the row of one context: a prompt behind it, then tokens."""
    plan, rng = bundle.plan, np.random.default_rng()
    assert plan.generation is not None
    last, tokens = plan.generation.passes[-1], folder / "tokens.bin"
    rng.integers(0, last.vocabulary, context + arguments.prompt).astype("<i8").tofile(tokens)
    events = agent.generate(
        folder / "plan", tokens, context, arguments.generate, samples=arguments.samples, passes=arguments.profile,
        device=arguments.device, limit_s=_LIMIT_S,
    )  # fmt: skip
    samples = [event for event in events if event["event"] == "sample" and event["phase"] == "timed"]
    between = np.concatenate([np.diff(event["token_ns"]) for event in samples]) / 1e6
    middle = context + arguments.prompt + arguments.generate // 2
    weights, cache = bytes_of(plan, last, middle)
    token_ms = float(np.median(between))
    return {
        "context": context, "prompt": arguments.prompt, "token_ms": token_ms,
        "token_ms_p10_p90": np.percentile(between, [10, 90]).tolist(),
        "prompt_ms": [(event["token_ns"][0] - event["start_ns"]) / 1e6 for event in samples],
        "weight_bytes": weights, "cache_bytes": cache, "gb_per_s": (weights + cache) / token_ms / 1e6,
        "steps": last.end - last.begin, "between_ms": between.tolist(),
        "programs_us": [programs_us(events, each) for each in plan.generation.passes],
    }  # fmt: skip


def programs_us(events: Sequence[dict[str, Any]], each: Pass) -> dict[str, list[float]]:
    """Return of each program the device's time in us, each step's median over the passes; most in all first."""
    steps: dict[tuple[str, int], list[float]] = {}
    for event in events:
        if event["event"] == "layer" and each.begin <= event["index"] < each.end:
            steps.setdefault((event["program"], event["index"]), []).append(event["duration_ns"] / 1e3)
    found: dict[str, list[float]] = {}
    for (program, _), spent in steps.items():
        found.setdefault(program, []).append(float(np.median(spent)))
    return dict(sorted(found.items(), key=lambda item: -sum(item[1])))


def measure(
    api: str, arguments: argparse.Namespace, steps: Sequence[DecoderStep], folder: Path
) -> list[dict[str, Any]]:
    """Print and return the rows of one API. Raises CompileError or ContenderError, in words."""
    caches = arguments.caches or folder
    agent = Agent(arguments.agent, caches / "agent", cache_environment(caches))
    facts = find_device(agent, api, arguments.device)
    limits, rows = limits_of(facts), list[dict[str, Any]]()
    copied = copy_bandwidth(agent, limits, api, arguments.device, arguments.copy_mib, caches)
    print(f"{api}: {facts['device_name']}; a copy: {copied:.1f} GB/s", flush=True)
    for precision in arguments.precisions.split(","):
        options = Options(api, precision, product=arguments.product, fuse=arguments.fuse)  # type: ignore[arg-type]
        bundle = compile_generation(steps, options, limits, spirv_cache=caches / "spirv")
        bundle.write(folder / "plan")
        for context in map(int, arguments.contexts.split(",")):
            row = timed(agent, folder, bundle, context, arguments)
            share = row["gb_per_s"] / copied
            rows.append({"api": api, "precision": precision, "copy_gb_per_s": copied, "of_copy": share, **row})
            print(
                f"  {precision} behind {context + arguments.prompt}: {row['token_ms']:.3f} ms a token, "
                f"{row['gb_per_s']:.1f} GB/s ({100 * share:.0f} % of the copy), {row['steps']} steps; prompt of "
                f"{arguments.prompt}: {np.median(row['prompt_ms']):.2f} ms",
                flush=True,
            )
            for each, programs in zip(bundle.plan.generation.passes, row["programs_us"], strict=True):  # type: ignore[union-attr]
                print(f"    {each.tokens} tokens:" * bool(programs), flush=True)
                for program, spent in programs.items():
                    print(f"    {len(spent):3} x {np.median(spent):8.1f} us  {program}", flush=True)
    return rows


def beside_torch(arguments: argparse.Namespace, model: Model) -> list[dict[str, Any]]:
    """Print and return PyTorch's row of each context."""
    from benchmarks.engine.torch_tokens import torch_times

    rows = list[dict[str, Any]]()
    for context in map(int, arguments.contexts.split(",")):
        token_ms, prompt_ms = torch_times(model, context, arguments.prompt)
        rows.append({"api": "torch", "precision": "fp16", "context": context, "prompt": arguments.prompt})
        rows[-1] |= {"token_ms": token_ms, "prompt_ms": [prompt_ms]}
        print(
            f"PyTorch's CUDA graph: fp16 behind {context + arguments.prompt}: {token_ms:.3f} ms a token; "
            f"prompt of {arguments.prompt}: {prompt_ms:.2f} ms",
            flush=True,
        )
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Time every API, precision and context; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    parser.add_argument("--backends", default="opencl,vulkan", help="opencl, vulkan, cpu")
    parser.add_argument("--precisions", default="fp16", help="fp32, fp16")
    parser.add_argument("--model", choices=MODELS, default="0.5b")
    kinds = ("f16", *map(str.lower, FORMATS))
    parser.add_argument("--weights", choices=kinds, default="f16", help="halves, or a format of packed blocks")
    parser.add_argument("--layers", type=int, default=0, help="another number of layers than the model has")
    parser.add_argument("--contexts", default="0,1024", help="tokens before the prompt, which are not timed")
    parser.add_argument("--prompt", type=int, default=32, help="tokens")
    parser.add_argument("--piece", type=int, default=512, help="most tokens of a prompt at once")
    parser.add_argument("--generate", type=int, default=64, help="tokens")
    parser.add_argument("--samples", type=int, default=3, help="prompts, each with its tokens")
    parser.add_argument("--profile", type=int, default=0, help="passes whose steps are timed one by one, after that")
    parser.add_argument("--product", default="auto", help="an algorithm of products with its tile, where it fits")
    parser.add_argument("--fuse", default="all", help="fusions, joined by `+`; without `chain` each step is a launch")
    parser.add_argument("--device", default="", help="words of its name")
    parser.add_argument("--torch", action="store_true", help="the same in PyTorch, halves, before and after ours")
    parser.add_argument("--copy-mib", type=int, default=256)
    parser.add_argument("--caches", type=Path, help="folder of compiled shaders and programs, which is kept")
    parser.add_argument("-o", "--output", type=Path, help="JSON of all rows")
    arguments = parser.parse_args(argv)
    model, status, rows = MODELS[arguments.model], 0, list[dict[str, Any]]()
    model = Model(**{**vars(model), "layers": arguments.layers or model.layers})
    with tempfile.TemporaryDirectory(prefix="tokens-") as name:
        folder = Path(name)
        contexts = [int(word) for word in arguments.contexts.split(",")]
        capacity = max(contexts) + arguments.prompt + arguments.generate
        write_model(folder / "m.gguf", model, capacity, arguments.weights)
        piece = min(arguments.piece, arguments.prompt, capacity)
        steps = load_decoder(folder / "m.gguf", capacity, (piece, 1) if piece > 1 else (1,))
        for api in (*["torch"] * arguments.torch, *arguments.backends.split(","), *["torch"] * arguments.torch):
            try:
                rows += beside_torch(arguments, model) if api == "torch" else measure(api, arguments, steps, folder)
            except (CompileError, ContenderError) as e:
                status = FAILED
                print(f"{api}: {e}", flush=True)
            if arguments.output:
                content = {"machine": describe_machine(), "model": vars(model), "weights": arguments.weights}
                content["rows"] = rows
                arguments.output.write_text(json.dumps(content))
    return status


if __name__ == "__main__":
    run_command(main)
