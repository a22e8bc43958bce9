"""Writes small decoders of transformers with random weights, by either of PyTorch's exporters, and their greedy tokens.

Run as a program, because their warnings are no matter of ours: FOLDER ARCHITECTURE WAY SEED.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LAYERS, WORDS, HEADS, SHARED, SIZE, COUNT = 3, 96, 4, 2, 16, 16
WAYS = {"script": 17, "dynamo": 18, "dynamo23": 23}
"""The exporters, each with its opset."""
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "phi3": {"pad_token_id": 0},
    "gemma2": {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0},
    "gemma3": {},
}
_CLASSES = {
    "llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "phi3": "Phi3", "gemma2": "Gemma2", "gemma3": "Gemma3"
}  # fmt: skip


def model_of(architecture: str, seed: int) -> Any:
    import torch
    import transformers

    said: dict[str, Any] = {
        "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": SHARED, "max_position_embeddings": 64,
        "tie_word_embeddings": False, "attn_implementation": "eager" if architecture == "gemma2" else "sdpa",
    }  # fmt: skip
    if architecture.startswith("gemma"):
        said |= {"sliding_window": 4, "query_pre_attn_scalar": SIZE}
    if architecture != "phi3":
        said["head_dim"] = SIZE
    name = _CLASSES[architecture]
    config = getattr(transformers, f"{name}{'Text' * (architecture == 'gemma3')}Config")
    model = getattr(transformers, f"{name}ForCausalLM")(config(**said, **ARCHITECTURES[architecture])).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            scale = 1.0 if "embed" in name else 1.5 * weight.shape[-1] ** -0.5
            usual = 0.0 if weight.dim() > 1 or architecture.startswith("gemma") or "bias" in name else 1.0
            weight.copy_(torch.randn_like(weight) * (scale if weight.dim() > 1 else 0.3) + usual)
    return model


def write(path: Path, architecture: str, way: str, seed: int) -> None:
    """Write a decoder, and beside it (.json) a prompt with the tokens that transformers generates."""
    import torch
    from transformers import DynamicCache

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model_of(architecture, seed)

        def forward(self, input_ids: Any, attention_mask: Any, past: Any) -> Any:
            cache = DynamicCache([tuple(pair) for pair in past])
            found = self.model(
                input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True
            )
            return found.logits, [(layer.keys, layer.values) for layer in found.past_key_values.layers]

    step = Step()
    prompt = torch.randint(1, WORDS, (1, 5))
    found = step.model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=COUNT, min_new_tokens=COUNT, do_sample=False,
        pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    said = {"prompt": prompt[0].tolist(), "tokens": found[0, prompt.shape[1] :].tolist()}
    path.with_suffix(".json").write_text(json.dumps(said))
    pasts = [tuple(torch.randn(1, SHARED, 3, SIZE) for _ in range(2)) for _ in range(LAYERS)]
    pairs = [f"{layer}.{word}" for layer in range(LAYERS) for word in ("key", "value")]
    names = ["input_ids", "attention_mask", *(f"past_key_values.{pair}" for pair in pairs)]
    outputs = ["logits", *(f"present.{pair}" for pair in pairs)]
    given = (prompt[:, :2], torch.ones(1, 5, dtype=torch.int64), pasts)
    usual: dict[str, Any] = {"input_names": names, "output_names": outputs, "opset_version": WAYS[way]}
    if way == "script":
        axes = {"input_ids": {1: "new"}, "attention_mask": {1: "every"}, "logits": {1: "new"}}
        axes |= {name: {2: "past"} for name in names[2:]} | {name: {2: "every"} for name in outputs[1:]}
        torch.onnx.export(step, given, str(path), dynamo=False, dynamic_axes=axes, **usual)
        return
    open_axis = torch.export.Dim.DYNAMIC
    shapes = ({1: open_axis}, {1: open_axis}, [({2: open_axis}, {2: open_axis})] * LAYERS)
    torch.onnx.export(step, given, str(path), dynamo=True, dynamic_shapes=shapes, external_data=False, **usual)


if __name__ == "__main__":
    write(Path(sys.argv[1]) / f"{sys.argv[2]}.{sys.argv[3]}.onnx", sys.argv[2], sys.argv[3], int(sys.argv[4]))
