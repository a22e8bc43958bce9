"""ResNet (He et al. 2016): blocks that add their input to their result."""

from __future__ import annotations

from kernels.graph import Graph

from .builder import NetworkBuilder


def resnet18(seed: int | None, batch: int = 1) -> Graph:
    """224x224, four stages of two basic blocks."""
    net = NetworkBuilder("resnet18", seed, (batch, 3, 224, 224))
    x = net.relu(net.batch_norm("conv1.norm", net.conv("conv1", net.input, 64, 7, stride=2, pad=3, bias=False)))
    x = net.max_pool("pool1", x, pad=1)
    for stage, k in enumerate((64, 128, 256, 512), 1):
        x = _basic_block(net, f"layer{stage}_1", x, k, stride=1 if stage == 1 else 2)
        x = _basic_block(net, f"layer{stage}_2", x, k, stride=1)
    features = net.flatten("features", net.global_average_pool("pool", x))
    return net.finish(net.softmax("prob", net.dense("logits", features, 1000, gain=1.0)))


def _basic_block(net: NetworkBuilder, name: str, x: str, k: int, *, stride: int) -> str:
    first = net.conv(f"{name}_conv1", x, k, 3, stride=stride, pad=1, bias=False)
    first = net.relu(net.batch_norm(f"{name}_norm1", first))
    second = net.conv(f"{name}_conv2", first, k, 3, pad=1, bias=False)
    second = net.batch_norm(f"{name}_norm2", second, scale=0.5)  # so that the sum keeps its scale over the blocks
    return net.relu(net.add(f"{name}_add", second, _shortcut(net, name, x, k, stride)))


def _shortcut(net: NetworkBuilder, name: str, x: str, k: int, stride: int) -> str:
    if stride == 1 and net.channels(x) == k:
        return x
    projected = net.conv(f"{name}_downsample", x, k, 1, stride=stride, bias=False)
    return net.batch_norm(f"{name}_downsample.norm", projected, scale=0.7)
