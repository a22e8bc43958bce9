"""ResNet (He et al. 2016): blocks that add their input to their result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

STAGE_CHANNELS = (64, 128, 256, 512)


def resnet18(seed: int | None, batch: int = 1, *, size: int = 224) -> Graph:
    """`size` x `size`, four stages of two basic blocks."""
    return _resnet(NetworkBuilder("resnet18", seed, (batch, 3, size, size)), _basic_block, (2, 2, 2, 2))


def resnet50(seed: int | None, batch: int = 1, *, size: int = 224) -> Graph:
    """`size` x `size`, 16 bottlenecks; a stage's stride is in its first 3x3 convolution, as trained today ("v1.5")."""
    return _resnet(NetworkBuilder("resnet50", seed, (batch, 3, size, size)), _bottleneck, (3, 4, 6, 3))


def _resnet(net: NetworkBuilder, add_block: Callable[..., str], blocks: Sequence[int]) -> Graph:
    x = net.relu(net.batch_norm("conv1.norm", net.conv("conv1", net.input, 64, 7, stride=2, pad=3, bias=False)))
    x = net.max_pool("pool1", x, pad=1)
    for stage, (k, count) in enumerate(zip(STAGE_CHANNELS, blocks, strict=True), 1):
        for block in range(1, count + 1):
            x = add_block(net, f"layer{stage}_{block}", x, k, stride=2 if block == 1 < stage else 1)
    features = net.flatten("features", net.global_average_pool("pool", x))
    return net.finish(net.softmax("prob", net.dense("logits", features, 1000, gain=1.0)))


def _basic_block(net: NetworkBuilder, name: str, x: str, k: int, *, stride: int) -> str:
    first = net.conv(f"{name}_conv1", x, k, 3, stride=stride, pad=1, bias=False)
    first = net.relu(net.batch_norm(f"{name}_norm1", first))
    second = net.conv(f"{name}_conv2", first, k, 3, pad=1, bias=False)
    second = net.batch_norm(f"{name}_norm2", second, scale=0.5)  # so that the sum keeps its scale over the blocks
    return net.relu(net.add(f"{name}_add", second, _shortcut(net, name, x, k, stride)))


def _bottleneck(net: NetworkBuilder, name: str, x: str, k: int, *, stride: int) -> str:
    """1x1 to k channels, 3x3, 1x1 to 4 k."""
    out = net.conv(f"{name}_conv1", x, k, 1, bias=False)
    out = net.conv(
        f"{name}_conv2", net.relu(net.batch_norm(f"{name}_norm1", out)), k, 3, stride=stride, pad=1, bias=False
    )
    out = net.conv(f"{name}_conv3", net.relu(net.batch_norm(f"{name}_norm2", out)), 4 * k, 1, bias=False)
    out = net.batch_norm(f"{name}_norm3", out, scale=0.5)
    return net.relu(net.add(f"{name}_add", out, _shortcut(net, name, x, 4 * k, stride)))


def _shortcut(net: NetworkBuilder, name: str, x: str, k: int, stride: int) -> str:
    if stride == 1 and net.channels(x) == k:
        return x
    projected = net.conv(f"{name}_downsample", x, k, 1, stride=stride, bias=False)
    return net.batch_norm(f"{name}_downsample.norm", projected, scale=0.7)
