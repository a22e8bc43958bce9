"""The networks that come with Caffe (study C): LeNet on MNIST, CIFAR-10 quick, and CaffeNet, its AlexNet."""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder


def lenet(seed: int | None, batch: int = 1) -> Graph:
    """28x28x1, digits."""
    net = NetworkBuilder("lenet", seed, (batch, 1, 28, 28))
    x = net.max_pool("pool1", net.conv("conv1", net.input, 20, 5), 2)
    x = net.max_pool("pool2", net.conv("conv2", x, 50, 5), 2)
    x = net.relu(net.dense("ip1", net.flatten("flat", x), 500))
    return net.finish(net.softmax("prob", net.dense("ip2", x, 10, gain=1.0)))


def cifar10_quick(seed: int | None, batch: int = 1) -> Graph:
    """32x32x3, ten classes."""
    net = NetworkBuilder("cifar10_quick", seed, (batch, 3, 32, 32))
    x = net.relu(net.max_pool("pool1", net.conv("conv1", net.input, 32, 5, pad=2), ceil=True))
    x = net.average_pool("pool2", net.relu(net.conv("conv2", x, 32, 5, pad=2)), ceil=True)
    x = net.average_pool("pool3", net.relu(net.conv("conv3", x, 64, 5, pad=2)), ceil=True)
    x = net.dense("ip1", net.flatten("flat", x), 64, gain=1.0)
    return net.finish(net.softmax("prob", net.dense("ip2", x, 10, gain=1.0)))


def alexnet(seed: int | None, batch: int = 1, *, size: int = 227) -> Graph:
    """Crops of `size` x `size`, at least 67, in Caffe's variant: grouped convolutions, pooling before normalisation."""
    return _caffenet("alexnet", seed, batch, size)


def caffenet(seed: int | None, batch: int = 1) -> Graph:
    """The same on 256x256 images, as study C runs it; pool5 ends in 6x6 outputs too."""
    return _caffenet("caffenet", seed, batch, 256)


def _caffenet(name: str, seed: int | None, batch: int, side: int) -> Graph:
    net = NetworkBuilder(name, seed, (batch, 3, side, side))
    x = net.relu(net.conv("conv1", net.input, 96, 11, stride=4))
    x = net.lrn("norm1", net.max_pool("pool1", x))
    x = net.relu(net.conv("conv2", x, 256, 5, pad=2, groups=2))
    x = net.lrn("norm2", net.max_pool("pool2", x))
    x = net.relu(net.conv("conv3", x, 384, 3, pad=1))
    x = net.relu(net.conv("conv4", x, 384, 3, pad=1, groups=2))
    x = net.relu(net.conv("conv5", x, 256, 3, pad=1, groups=2))
    x = net.flatten("flat", net.max_pool("pool5", x))
    for layer in ("fc6", "fc7"):
        x = net.relu(net.dense(layer, x, 4096))
    return net.finish(net.softmax("prob", net.dense("fc8", x, 1000, gain=1.0)))
