"""The fusions by name: each can be switched on its own, and none changes what a network computes."""

from __future__ import annotations

from kernels.errors import OptionError

FUSIONS: dict[str, str] = {
    "activation": "relu, clip, (hard) sigmoid, leaky relu, hard swish, SiLU, GELU, tanh are done by the layer before",
    "bias": "a constant that is added to each channel becomes the bias of the layer before it",
    "branches": "convolutions and normalisations of one tensor whose results are added up become one convolution",
    "concat": "the parts of a concat are written straight into their place in its result",
    "depthwise": "a 1x1 convolution computes the depthwise one, or the gate or choice of channels, before it, where a "
    "GPU with memory of its own takes less time so",
    "elementwise": "a chain of operations of each element, maps or beside one, is one kernel; x * sigmoid(x) too",
    "normalisation": "batch normalisation and constant scales go into the weights of the layer before them",
    "padding": "a convolution pads its own input, by zeros or, on a GPU, by reflection",
    "residual": "a convolution adds the other branch before its activation",
    "rows": "softmax(q k) v is one kernel, so is a normalisation of rows; rows that nobody reads are not computed; "
    "on a GPU dense layers end in what follows",
    "squeeze": "two layers of single pixels, as squeeze and excitation has them, are one kernel on a GPU with memory "
    "of its own",
}
ALL = frozenset(FUSIONS)


def fusions(words: str) -> frozenset[str]:
    """The fusions that `all`, `none` or names joined by `+` ask for. Raises OptionError for an unknown name."""
    if words in ("all", "none"):
        return ALL if words == "all" else frozenset()
    names = words.split("+")
    for name in names:
        if name not in FUSIONS:
            known = ", ".join(FUSIONS)
            raise OptionError(f"there is no fusion {name!r}; write all, none, or some of {known}, joined by `+`")
    return frozenset(names)


def fusion_words(value: object) -> object:
    """A list of names, `true` or `false` in words; another value as it is."""
    if isinstance(value, bool):
        return "all" if value else "none"
    names = value.split("+") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    return "+".join(sorted(names)) or "none"


def why_no_fusions(words: str) -> str:
    """Return why words name no fusions; empty: they do."""
    try:
        fusions(words)
    except OptionError as e:
        return str(e)
    return ""
