"""The same random Llama in PyTorch: a token and a prompt, each a CUDA graph in halves. Needs PyTorch with CUDA.

Weights of query, key and value are one matrix, and those of gate and up another, as quick implementations have them.
Attention is `scaled_dot_product_attention` over the places that are valid, without a copy of shared heads. A graph is
of one position: PyTorch is spared the mask of a static cache.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from benchmarks.engine.cuda_graph import WARMUP, graphed

if TYPE_CHECKING:
    from benchmarks.engine.tokens import Model

_SAMPLES = 30


class Llama:
    """Random weights, and caches of a capacity."""

    def __init__(self, sizes: Model, capacity: int) -> None:
        self.sizes, m = sizes, sizes
        self.rows = (m.heads * m.size, m.shared * m.size, m.shared * m.size)
        shapes = [(sum(self.rows), m.width), (m.width, m.heads * m.size), (2 * m.inner, m.width), (m.width, m.inner)]
        self.layers = [[_random(*shape) for shape in shapes] + [_random(2, m.width)] for _ in range(m.layers)]
        self.caches = [_random(2, 1, m.shared, capacity, m.size) for _ in range(m.layers)]
        self.table, self.output, self.norm = _random(m.words, m.width), _random(m.words, m.width), _random(m.width)
        angles = torch.outer(torch.arange(capacity), 5e5 ** (-torch.arange(0, m.size, 2) / m.size)).repeat(1, 2)
        self.cosines, self.sines = (each(angles).half().cuda() for each in (torch.cos, torch.sin))

    def step(self, tokens: torch.Tensor, position: int) -> torch.Tensor:
        """Return the logits of the last of `tokens`, (count,), of which so many came before: (words,)."""
        count, m = len(tokens), self.sizes
        end, mask = position + count, None
        if count > 1:
            mask = torch.ones(count, end, dtype=torch.bool, device="cuda").tril(position)
        x = self.table[tokens]
        for (qkv, out, gate_up, down, norms), cache in zip(self.layers, self.caches, strict=True):
            rows = functional.linear(functional.rms_norm(x, (m.width,), norms[0], 1e-5), qkv)
            q, k, v = (each.view(count, -1, m.size).transpose(0, 1)[None] for each in rows.split(self.rows, -1))
            cache[0, :, :, position:end], cache[1, :, :, position:end] = self._turned(k, position), v
            found = functional.scaled_dot_product_attention(
                self._turned(q, position), cache[0, :, :, :end], cache[1, :, :, :end], attn_mask=mask, enable_gqa=True
            )
            x = x + functional.linear(found[0].transpose(0, 1).reshape(count, -1), out)
            gate, up = functional.linear(functional.rms_norm(x, (m.width,), norms[1], 1e-5), gate_up).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, down)
        return functional.linear(functional.rms_norm(x[-1], (m.width,), self.norm, 1e-5), self.output)

    def _turned(self, rows: torch.Tensor, position: int) -> torch.Tensor:
        end = position + rows.shape[2]
        first, second = rows.chunk(2, -1)
        return rows * self.cosines[position:end] + torch.cat((-second, first), -1) * self.sines[position:end]


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float16, device="cuda") * shape[-1] ** -0.5


@torch.inference_mode()
def torch_times(sizes: Model, context: int, prompt: int) -> tuple[float, float]:
    """Return the medians of a token behind context and prompt, and of the prompt behind the context, ms."""
    llama = Llama(sizes, context + prompt + 1)
    tokens = torch.randint(sizes.words, (prompt,), device="cuda")
    found = list[float]()
    for own, position in ((tokens[:1], context + prompt), (tokens, context)):
        run, _ = graphed(lambda own=own, position=position: {"logits": llama.step(own, position)})  # type: ignore[misc]
        times = [run() for _ in range(WARMUP + _SAMPLES)]
        found.append(median(times[WARMUP:]))
    return found[0], found[1]
