"""Networks as large as they are used: language, speech, pictures drawn, sharpened and divided into parts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import torch
from torch import nn

Made = tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, ...]]]


def _layers(*channels: int) -> nn.Sequential:
    """3x3 convolutions, each with batch normalisation and a rectifier."""
    parts: list[nn.Module] = []
    for given, made in pairwise(channels):
        parts += [nn.Conv2d(given, made, 3, padding=1, bias=False), nn.BatchNorm2d(made), nn.ReLU()]
    return nn.Sequential(*parts)


class _Unet(nn.Module):
    """Ronneberger et al., 2015, with pads and a quarter of its channels."""

    def __init__(self) -> None:
        super().__init__()
        wide = (16, 32, 64, 128, 256)
        self.down = nn.ModuleList(_layers(g, m, m) for g, m in zip((3, *wide), wide, strict=False))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in wide[-2::-1])
        self.up = nn.ModuleList(_layers(2 * w, w, w) for w in wide[-2::-1])
        self.last = nn.Conv2d(wide[0], 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for layer in self.down:
            x = layer(nn.functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for grow, layer in zip(self.grow, self.up, strict=True):
            x = layer(torch.cat([kept.pop(), grow(x)], 1))
        found: torch.Tensor = self.last(x)
        return found


class _DenseBlock(nn.Module):
    """Five convolutions, each of all before it."""

    def __init__(self, wide: int = 32, more: int = 16) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(wide + i * more, more if i < 4 else wide, 3, padding=1) for i in range(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = [x]
        for part in self.parts[:-1]:
            kept.append(nn.functional.leaky_relu(part(torch.cat(kept, 1)), 0.2))
        found: torch.Tensor = x + 0.2 * self.parts[-1](torch.cat(kept, 1))
        return found


class _Esrgan(nn.Module):
    """Wang et al., 2018, with two blocks and half of its channels: four times as many pixels each way."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.blocks = nn.Conv2d(3, 32, 3, padding=1), nn.Sequential(*(_DenseBlock() for _ in range(6)))
        self.up = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(3))
        self.last = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = x + self.blocks(x)
        for layer in self.up[:2]:
            x = nn.functional.leaky_relu(layer(nn.functional.interpolate(x, scale_factor=2)), 0.2)
        found: torch.Tensor = self.last(nn.functional.leaky_relu(self.up[2](x), 0.2))
        return found


class _Recurrent(nn.Module):
    """Two layers of 256 over 50 steps, as a language model or a recogniser of speech has them."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell, self.last = kind(80, 256, num_layers=2, batch_first=True), nn.Linear(256, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.cell(x)[0])
        return found


def _dcgan() -> nn.Module:
    """Radford et al., 2015: the generator of pictures of 64 x 64."""
    parts: list[nn.Module] = []
    for given, made, stride in ((100, 512, 1), (512, 256, 2), (256, 128, 2), (128, 64, 2)):
        parts += [
            nn.ConvTranspose2d(given, made, 4, stride, stride - 1, bias=False), nn.BatchNorm2d(made), nn.ReLU()
        ]  # fmt: skip
    return nn.Sequential(*parts, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


def _normal(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randn(*shape),)


SIZED: dict[str, Made] = {
    "unet": (_Unet, _normal(1, 3, 256, 256)),
    "esrgan": (_Esrgan, _normal(1, 3, 64, 64)),
    "lstm": (lambda: _Recurrent(nn.LSTM), _normal(1, 50, 80)),
    "gru": (lambda: _Recurrent(nn.GRU), _normal(1, 50, 80)),
    "dcgan": (_dcgan, _normal(1, 100, 1, 1)),
}
with suppress(ImportError):
    import transformers  # type: ignore[import-not-found, unused-ignore]

    from .language import HIDDEN, MASKED, Called

    def _gpt2() -> nn.Module:
        """The layers of GPT-2 small; its words are a part of them only."""
        return Called(transformers.GPT2Model(transformers.GPT2Config(vocab_size=500)), MASKED, HIDDEN, use_cache=False)

    def _whisper() -> nn.Module:
        config = transformers.WhisperConfig()  # of the tiny one, by default
        return Called(transformers.WhisperModel(config).encoder, ("input_features",), HIDDEN)

    def _words(count: int) -> Callable[[], tuple[torch.Tensor, ...]]:
        return lambda: (torch.randint(3, 200, (1, count)), torch.ones(1, count, dtype=torch.long))

    SIZED |= {
        "gpt2_16": (_gpt2, _words(16)),
        "gpt2_128": (_gpt2, _words(128)),
        "whisper_tiny": (_whisper, _normal(1, 80, 3000)),
    }
"""Networks by name: how each is made, and its inputs."""
