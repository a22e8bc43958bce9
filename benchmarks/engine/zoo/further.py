"""Networks of fields that the other lists leave out: optical flow, video, unpooling, speech, diffusion."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import nn

Made = tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, ...]]]
VIDEOS: dict[str, tuple[int, ...]] = {
    "r3d_18": (8, 64, 64), "mc3_18": (8, 64, 64), "r2plus1d_18": (8, 64, 64), "s3d": (16, 224, 224),
    "swin3d_t": (8, 64, 64),
}  # fmt: skip
"""torchvision's, and the pictures that they are given."""


class _Segnet(nn.Module):
    """An encoder that keeps where each maximum was, and a decoder that puts numbers back there."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(self._layer(*each) for each in ((3, 16), (16, 32), (32, 32)))
        self.up = nn.ModuleList(self._layer(*each) for each in ((32, 32), (32, 16), (16, 5)))

    @staticmethod
    def _layer(given: int, made: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.down:
            x = layer(x)
            size = x.shape[2:]
            x, places = nn.functional.max_pool2d(x, 2, 2, return_indices=True)
            kept.append((places, size))
        for layer in self.up:
            places, size = kept.pop()
            x = layer(nn.functional.max_unpool2d(x, places, 2, 2, output_size=size))
        return x


class _Scattered(_Segnet):
    """The same by `scatter`, as networks do it that both exporters are to write."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.down:
            x = layer(x)
            size = x.shape
            x, places = nn.functional.max_pool2d(x, 2, 2, return_indices=True)
            kept.append((places, size))
        for layer in self.up:
            places, (_, _, h, w) = kept.pop()
            n, c = x.shape[:2]
            flat = torch.zeros(n, c, h * w, dtype=x.dtype).scatter(2, places.flatten(2), x.flatten(2))
            x = layer(flat.view(n, c, h, w))
        return x


class _Flow(nn.Module):
    """The last of the flows that a network of optical flow makes better step by step."""

    def __init__(self, inner: nn.Module, steps: int = 3) -> None:
        super().__init__()
        self.inner, self.steps = inner, steps

    def forward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(before, after, num_flow_updates=self.steps)[-1]
        return out


class _Bags(nn.Module):
    """Means of bags of words of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.last = nn.EmbeddingBag(200, 32, mode="mean"), nn.Linear(32, 4)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.bag(words, torch.tensor([0, 3, 7])))
        return out


class _Reader(nn.Module):
    """Text to frames of sound, as Tacotron does: each frame follows from the one before and from where it looks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.encoder = nn.Embedding(40, 32), nn.LSTM(32, 16, bidirectional=True, batch_first=True)
        self.attend, self.look = nn.LSTMCell(8 + 32, 32), nn.Conv1d(2, 8, 5, padding=2)
        self.query, self.memory, self.place, self.score = (
            nn.Linear(*n) for n in ((32, 16), (32, 16), (8, 16), (16, 1))
        )
        self.decode, self.frame = nn.LSTMCell(64, 32), nn.Linear(64, 8)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        known, _ = self.encoder(self.embed(text))
        n, length, _ = known.shape
        keys = self.memory(known)
        zeros = [known.new_zeros(n, 32) for _ in range(4)]
        frame, context = known.new_zeros(n, 8), known.new_zeros(n, 32)
        weights = total = known.new_zeros(n, length)
        (h, c), (h2, c2), frames = zeros[:2], zeros[2:], []
        for _ in range(6):
            h, c = self.attend(torch.cat([frame, context], -1), (h, c))
            seen = self.place(self.look(torch.stack([weights, total], 1)).transpose(1, 2))
            weights = self.score(torch.tanh(self.query(h)[:, None] + keys + seen)).squeeze(-1).softmax(-1)
            total = total + weights
            context = (weights[:, None] @ known).squeeze(1)
            h2, c2 = self.decode(torch.cat([h, context], -1), (h2, c2))
            frame = self.frame(torch.cat([h2, context], -1))
            frames.append(frame)
        return torch.stack(frames, 2)


class _Diffusion(nn.Module):
    """A step of a diffusion network with text to look at, of the package `diffusers`."""

    def __init__(self) -> None:
        super().__init__()
        from diffusers import UNet2DConditionModel  # type: ignore[import-not-found, unused-ignore]

        self.inner = UNet2DConditionModel(
            sample_size=16, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=32,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), attention_head_dim=8, norm_num_groups=8,
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        )  # fmt: skip

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(x, time, text, return_dict=False)[0]
        return out


class _Decoder(nn.Module):
    """Pictures of what a diffusion network made."""

    def __init__(self) -> None:
        super().__init__()
        from diffusers import AutoencoderKL

        self.inner = AutoencoderKL(
            block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, norm_num_groups=8,
            up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4,
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner.decode(x, return_dict=False)[0]
        return out


class _Statistics(nn.Module):
    """Normalised by the batch's own numbers, as pix2pix keeps it, and a determinant of what comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 9, 3), nn.BatchNorm2d(9, track_running_stats=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.first(x)).mean((2, 3)) + self.first.weight.mean((1, 2, 3))
        return torch.linalg.det(x.view(-1, 3, 3) + torch.eye(3, dtype=x.dtype))


def _normal(*shapes: tuple[int, ...]) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: tuple(torch.randn(*shape) for shape in shapes)


def _torchvision(name: str, **words: Any) -> nn.Module:
    from torchvision.models import get_model

    found: nn.Module = get_model(name, weights=None, **words)
    return found


def _mvit(second: bool) -> nn.Module:
    """torchvision's MViT, version 1 or 2, of five blocks for small pictures: comparing whole ones takes 20 GB."""
    from torchvision.models.video.mvit import (  # type: ignore[import-not-found, unused-ignore]
        MSBlockConfig,
        MViT,
    )

    wide = ((1, 32, 32, 1, 8), (2, 32, 64, 2, 4), (2, 64, 64, 1, 4), (4, 64, 128, 2, 2), (8, 128, 128, 2, 1))
    blocks = [
        MSBlockConfig(heads, given, made, [3, 3, 3], [3, 3, 3], [1, step, step], [1, apart, apart])
        for heads, given, made, step, apart in wide
    ]
    found: nn.Module = MViT(
        (64, 64), 8, blocks, residual_pool=second, residual_with_cls_embed=not second, rel_pos_embed=second,
        proj_after_attn=second, num_classes=10,
    )  # fmt: skip
    return found


FURTHER: dict[str, Made] = {
    "segnet": (_Segnet, _normal((1, 3, 32, 48))),
    "segnet_scattered": (_Scattered, _normal((2, 3, 32, 48))),
    "embedding_bags": (_Bags, lambda: (torch.randint(0, 200, (12,)),)),
    "tacotron": (_Reader, lambda: (torch.randint(0, 40, (1, 9)),)),
    "batch_statistics": (_Statistics, _normal((4, 3, 12, 12))),
}
with suppress(ImportError):
    import torchvision  # type: ignore[import-not-found, unused-ignore] # noqa: F401

    FURTHER |= {
        "mvit": (lambda: _mvit(False), _normal((1, 3, 8, 64, 64))),
        "mvit_v2": (lambda: _mvit(True), _normal((1, 3, 8, 64, 64))),
        **{
            name: (lambda name=name: _torchvision(name), _normal((1, 3, *shape)))  # type: ignore[misc]
            for name, shape in VIDEOS.items()
        },
        **{
            name: (lambda name=name: _Flow(_torchvision(name)), _normal(*[(1, 3, 128, 128)] * 2))  # type: ignore[misc]
            for name in ("raft_small", "raft_large")
        },
    }
with suppress(ImportError):
    import diffusers  # type: ignore[import-not-found, unused-ignore] # noqa: F401

    FURTHER |= {
        "diffusion_unet": (
            _Diffusion, lambda: (torch.randn(1, 4, 16, 16), torch.tensor([7.0]), torch.randn(1, 5, 32))
        ),
        "diffusion_decoder": (_Decoder, _normal((1, 4, 8, 8))),
    }  # fmt: skip
"""Networks by name: how each is made, and its inputs."""
