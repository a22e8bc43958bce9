"""Networks to bring: torchvision's, timm's and transformers' where they are installed, small kinds of our own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import nn

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]

CLASSIFIERS = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet",
    "inception_v3", "maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small",
    "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn", "vgg16",
    "vit_b_16", "wide_resnet50_2",
)  # fmt: skip
SEGMENTERS = (
    "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50",
)  # fmt: skip
DETECTORS = {"ssdlite320_mobilenet_v3_large": 320, "retinanet_resnet50_fpn": 320, "fcos_resnet50_fpn": 320}
"""Detectors, each with the extent of a picture."""
TIMM = (
    "deit_tiny_patch16_224", "ecaresnet26t", "efficientformer_l1", "fastvit_t8", "ghostnet_100",
    "hardcorenas_a", "hrnet_w18_small", "levit_128s", "mixer_b16_224", "mobilevit_xs", "nfnet_l0",
    "poolformer_s12", "seresnet18", "tf_efficientnet_lite0", "xcit_nano_12_p16_224",
)  # fmt: skip


class _Largest(nn.Module):
    """A segmentation network's map of classes alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(x)["out"]
        return out


class _Boxes(nn.Module):
    """A detection network's scores and boxes of all anchors: what comes before some of them are chosen."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = inner.backbone, inner.head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(list(self.head(list(self.backbone(x).values())).values()), -1)


class _Recurrent(nn.Module):
    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell = kind(16, 32, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.head(self.cell(x)[0])
        return hidden


class _Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.low = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.InstanceNorm2d(32, affine=True), nn.ELU()
        )
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.out = nn.Conv2d(32, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = self.down(x)
        mask: torch.Tensor = self.out(torch.cat([high, self.up(self.low(high))], 1))
        return mask


class _Siren(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(2, 64), nn.Linear(64, 64), nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        colour: torch.Tensor = self.last(torch.sin(30 * self.second(torch.sin(30 * self.first(x)))))
        return colour


class _Tokens(nn.Module):
    """Numbers of words to a small encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(500, 64)
        self.encoder = _encoder()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.encoder(self.embed(x))
        return out


class _Edges(nn.Module):
    """A graph network: each node takes the mean of what its neighbours send. The edges are an input."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return self._mean(self.second(torch.relu(self._mean(self.first(x), edges))), edges)

    @staticmethod
    def _mean(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        count = torch.zeros(x.shape[0]).index_add(0, edges[1], torch.ones(edges.shape[1]))
        return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]) / count.clamp(min=1)[:, None]


class _Turned(nn.Module):
    """A spatial transformer: a picture turned as the network itself says."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Sequential(nn.Conv2d(1, 4, 5), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 6))
        self.last = nn.Conv2d(1, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        theta = self.turn(x).view(-1, 2, 3) * 0.2 + torch.tensor([[1.0, 0, 0], [0, 1, 0]], dtype=x.dtype)
        grid = nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
        out: torch.Tensor = self.last(nn.functional.grid_sample(x, grid, align_corners=False))
        return out


def _encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True), 2)


def _normal(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randn(*shape),)


@dataclass(frozen=True)
class Small:
    """A small kind of network, and its input."""

    module: Callable[[], nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]


SMALL = {
    "lstm": Small(lambda: _Recurrent(nn.LSTM), _normal(1, 12, 16)),
    "gru": Small(lambda: _Recurrent(nn.GRU), _normal(1, 12, 16)),
    "transformer_encoder": Small(_encoder, _normal(1, 20, 64)),
    "tokens": Small(_Tokens, lambda: (torch.randint(0, 500, (1, 20)),)),
    "edges": Small(_Edges, lambda: (torch.randn(10, 8), torch.randint(0, 10, (2, 25)))),
    "turned": Small(_Turned, _normal(1, 1, 20, 20)),
    "fold": Small(
        lambda: nn.Sequential(nn.Unfold(3, padding=1, stride=2), nn.Linear(64, 64), nn.Fold((16, 16), 3, 1, 1, 2)),
        _normal(1, 3, 16, 16),
    ),
    "unet": Small(_Unet, _normal(1, 3, 64, 64)),
    "dcgan": Small(
        lambda: nn.Sequential(
            nn.ConvTranspose2d(32, 64, 4), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh(),
        ),
        _normal(1, 32, 1, 1),
    ),
    "espcn": Small(
        lambda: nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3)
        ),
        _normal(1, 1, 32, 32),
    ),
    "fsrcnn": Small(
        lambda: nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.PReLU(16), nn.Conv2d(16, 16, 3, padding=1), nn.PReLU(16),
            nn.ConvTranspose2d(16, 1, 9, 3, 4, output_padding=2),
        ),
        _normal(1, 1, 24, 24),
    ),
    "siren": Small(_Siren, _normal(256, 2)),
    "tcn": Small(
        lambda: nn.Sequential(
            nn.Conv1d(8, 32, 3, padding=2, dilation=2), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 16, 3), nn.Softplus(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
            nn.Linear(16, 5), nn.LogSoftmax(1),
        ),
        _normal(1, 8, 64),
    ),
    "c3d": Small(
        lambda: nn.Sequential(
            nn.Conv3d(3, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2),
            nn.Conv3d(16, 32, 3, padding=1), nn.SiLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 10),
        ),
        _normal(1, 3, 8, 32, 32),
    ),
    "mlp_norm": Small(
        lambda: nn.Sequential(
            nn.Linear(20, 64), nn.LayerNorm(64), nn.ELU(), nn.Linear(64, 64), nn.Mish(), nn.Linear(64, 5),
            nn.Hardswish(),
        ),
        _normal(4, 20),
    ),
    "groups": Small(
        lambda: nn.Sequential(
            nn.Conv2d(3, 32, 3), nn.GroupNorm(8, 32), nn.LeakyReLU(0.1), nn.Conv2d(32, 32, 3, groups=8),
            nn.Hardsigmoid(),
        ),
        _normal(1, 3, 32, 32),
    ),
}  # fmt: skip


def _import_torchvision() -> None:
    """Importing it names two compiled operators, which a torchvision for another kind of PyTorch (CUDA) does not load.

    No network here uses them: they are declared, and nothing more.
    """
    try:
        import torchvision  # type: ignore[import-not-found, unused-ignore]
    except RuntimeError:
        for operator in ("nms", "qnms"):
            torch.library.define(f"torchvision::{operator}", "(Tensor boxes, Tensor scores, float iou) -> Tensor")
        import torchvision  # noqa: F401


def names() -> list[str]:
    """Return the names of every network that can be made here."""
    found = list(SMALL)
    with suppress(ImportError):
        _import_torchvision()
    for package, theirs in (
        ("torchvision", lambda: [*CLASSIFIERS, *SEGMENTERS, *DETECTORS]),
        ("timm", lambda: [f"timm:{name}" for name in TIMM]),
        ("transformers", lambda: [f"hf:{name}" for name in _language()]),
        ("torch", lambda: [f"further:{name}" for name in _further()]),
        ("torch", lambda: [f"sized:{name}" for name in _sized()]),
    ):
        try:
            __import__(package)
            found += theirs()
        except Exception as e:  # absent, or built for another PyTorch: either way its networks cannot be made
            print(f"{package} cannot be imported: {e}", file=sys.stderr)
    return found


def _language() -> dict[str, Small]:
    with suppress(ImportError):
        _import_torchvision()  # transformers imports it where it is installed
    from .language import LANGUAGE

    return {name: Small(*made) for name, made in LANGUAGE.items()}


def _further() -> dict[str, Small]:
    with suppress(ImportError):
        _import_torchvision()
    from .further import FURTHER

    return {name: Small(*made) for name, made in FURTHER.items()}


def _sized() -> dict[str, Small]:
    with suppress(ImportError):
        _import_torchvision()
    from .sized import SIZED

    return {name: Small(*made) for name, made in SIZED.items()}


def _classifiers() -> list[str]:
    """All that torchvision has; `CLASSIFIERS` are those of each kind that are tried by default."""
    _import_torchvision()
    from torchvision import models

    return list(models.list_models(module=models))


def make(name: str, batch: int, seed: int) -> Made:
    """The network in evaluation mode with weights from the seed, and a fresh input; raises KeyError for another name.

    Statistics of batch normalisation and its scales are drawn, too: ones and zeros hide errors.
    """
    torch.manual_seed(seed)
    family, _, rest = name.partition(":")
    listed = {"hf": _language, "further": _further, "sized": _sized}
    if name in SMALL or family in listed:
        small = SMALL[name] if name in SMALL else listed[family]()[rest]
        module, inputs = small.module(), small.inputs()
        inputs = tuple(torch.cat([x] * batch) if batch > 1 else x for x in inputs)
    elif name.startswith("timm:"):
        _import_torchvision()
        import timm

        module = timm.create_model(name.removeprefix("timm:"), pretrained=False)
        size = module.default_cfg.get("input_size", (3, 224, 224))
        inputs = (torch.randn(batch, *size),)
    elif name in (*SEGMENTERS, *DETECTORS) or name in _classifiers():
        from torchvision.models import get_model  # type: ignore[import-not-found, unused-ignore]

        extra = {"weights_backbone": None} if name in (*SEGMENTERS, *DETECTORS) else {}
        module = get_model(name, weights=None, **extra)
        module = _Largest(module) if name in SEGMENTERS else _Boxes(module) if name in DETECTORS else module
        extent = DETECTORS.get(name, 299 if name == "inception_v3" else 224)
        inputs = (torch.randn(batch, 3, extent, extent),)
    else:
        raise KeyError(name)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.Linear) and not part.weight.any():  # heads begin with zeros, and so would the result
                part.weight.normal_(0, 0.05)
            if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
                part.running_mean.normal_(0, 0.1)
                assert part.running_var is not None
                part.running_var.uniform_(0.5, 1.5)
                if part.weight is not None:
                    part.weight.uniform_(0.5, 1.5)
                    part.bias.normal_(0, 0.1)
    return module.eval(), inputs
