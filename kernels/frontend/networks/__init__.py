"""Built-in workloads by name: networks with seeded weights, and single operations at named sizes."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from kernels.ir.graph import Graph

from .autoencoder import autoencoder_784, classifier_784
from .builder import seeded_normal, seeded_whole
from .caffe import alexnet, caffenet, cifar10_quick, lenet
from .googlenet import googlenet
from .inception import inception_v3
from .mobilenet import mobilenet_v1, mobilenet_v2
from .operations import FAMILIES, OPERATIONS
from .pynet import CHANNELS, pynet, pynet_full
from .pynet_layers import PYNET_LAYERS
from .resnet import resnet18, resnet50
from .squeezenet import squeezenet_v1_0, squeezenet_v1_1
from .vgg import vgg16

__all__ = ["BUILT_IN", "FAMILIES", "NETWORKS", "OPERATIONS", "Network", "known_words", "seeded_normal", "seeded_whole"]


class Network(Protocol):
    """Builds a network whose weights depend on the seed only; without a seed its shapes, with weights that are zero.

    What is keyword-only are its parameters: sizes that an experiment may set."""

    def __call__(self, seed: int | None, batch: int = 1) -> Graph: ...


NETWORKS: dict[str, Network] = {
    "alexnet": alexnet,
    "autoencoder_784": autoencoder_784,
    "caffenet": caffenet,
    "cifar10_quick": cifar10_quick,
    "classifier_784": classifier_784,
    "googlenet": googlenet,
    "inception_v3": inception_v3,
    "lenet": lenet,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "pynet": pynet,
    "pynet_full": pynet_full,
    **{f"pynet_level_{level}": partial(pynet, level=level) for level in CHANNELS},
    "resnet18": resnet18,
    "resnet50": resnet50,
    "squeezenet_v1_0": squeezenet_v1_0,
    "squeezenet_v1_1": squeezenet_v1_1,
    "vgg16": vgg16,
}

BUILT_IN: dict[str, Network] = {**NETWORKS, **OPERATIONS, **PYNET_LAYERS}
"""Networks and single operations."""


def known_words() -> str:
    """Every network, and the operations by their ranges: for messages."""
    ranges = (f"{family.workload(family.sizes[0])} to {family.sizes[-1]}" for family in FAMILIES.values())
    return ", ".join((*NETWORKS, *ranges, f"{next(iter(PYNET_LAYERS))} to {len(PYNET_LAYERS) - 1}"))
