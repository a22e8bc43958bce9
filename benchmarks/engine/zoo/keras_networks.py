"""Networks that Keras' users bring, exported by tf2onnx: Keras' own applications, and small kinds of ours.

`keras:` are of Keras 3, whose recurrent layers tf2onnx writes as `Loop`; `keras2:` are of tf_keras, whose it writes as
LSTM and GRU. TensorFlow computes the reference, in double precision, from the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found, unused-ignore]

Tensor = Any
Array = np.ndarray[Any, Any]
Body = Callable[[Tensor], Tensor]
LIBRARIES = {"keras": "keras", "keras2": "tf_keras"}
APPLICATIONS = {
    "mobilenet": "MobileNet", "mobilenet_v2": "MobileNetV2", "mobilenet_v3_small": "MobileNetV3Small",
    "mobilenet_v3_large": "MobileNetV3Large", "efficientnet_b0": "EfficientNetB0",
    "efficientnet_v2_b0": "EfficientNetV2B0", "resnet50": "ResNet50", "resnet50_v2": "ResNet50V2",
    "densenet121": "DenseNet121", "inception_v3": "InceptionV3", "inception_resnet_v2": "InceptionResNetV2",
    "xception": "Xception", "nasnet_mobile": "NASNetMobile", "convnext_tiny": "ConvNeXtTiny",
}  # fmt: skip
EXTENTS = {"inception_v3": 299, "inception_resnet_v2": 299, "xception": 299}
"""The extents of a picture, where it is not 224."""
WORDS, TEXT = 500, (20,)
"""Words that a network knows, and the shape of a text."""


class _Networks:
    """Small kinds of networks, of one version of Keras."""

    def __init__(self, keras: Any) -> None:
        self.keras, self.layers = keras, keras.layers

    def all(self) -> dict[str, tuple[tuple[int, ...], Body]]:
        """Shape of an input without its batch, and what is made of it."""
        k, stack, text = self.layers, self._stack, self._text
        return {
            "lstm": ((12, 16), stack(lambda: k.LSTM(32, return_sequences=True), lambda: k.LSTM(32),
                                     lambda: k.Dense(8))),
            "gru": ((12, 16), stack(lambda: k.GRU(32, return_sequences=True), lambda: k.GRU(32, go_backwards=True),
                                    lambda: k.Dense(8))),
            "gru_reset_before": ((12, 16), stack(lambda: k.GRU(32, reset_after=False), lambda: k.Dense(8))),
            "simple_rnn": ((12, 16), stack(lambda: k.SimpleRNN(32), lambda: k.Dense(8))),
            "text_bilstm": (TEXT, text(lambda: k.Bidirectional(k.LSTM(32)))),
            "text_bilstm_masked": (TEXT, text(lambda: k.Bidirectional(k.LSTM(32)), masked=True)),
            "text_gru_masked": (TEXT, text(lambda: k.GRU(32), masked=True)),
            "text_pooled": (TEXT, text(k.GlobalAveragePooling1D, lambda: k.Dense(16, "relu"))),
            "text_transformer": (TEXT, text(self._positions, lambda: self._transformer, k.GlobalAveragePooling1D)),
            "sequence_to_sequence": ((12, 16), self._sequence_to_sequence),
            "conv_lstm": ((4, 16, 16, 3), stack(lambda: k.ConvLSTM2D(8, 3, padding="same"), lambda: k.Conv2D(1, 1))),
            "conv1d": ((64, 8), stack(
                lambda: k.Conv1D(32, 5, padding="same", activation="relu"), k.BatchNormalization, k.MaxPooling1D,
                lambda: k.Conv1D(16, 3, strides=2, activation="elu"), k.GlobalAveragePooling1D,
                lambda: k.Dense(5, "softmax"))),
            "wavenet": ((64, 8), self._wavenet),
            "attention": ((20, 32), self._transformer),
            "attention_causal": ((20, 32), lambda x: self._transformer(x, causal=True)),
            "unet": ((64, 64, 3), self._unet),
            "super_resolution": ((32, 32, 1), stack(
                lambda: k.Conv2D(32, 5, padding="same", activation="tanh"),
                lambda: k.Conv2D(9, 3, padding="same"), lambda: k.Lambda(lambda x: tf.nn.depth_to_space(x, 3)))),
            "vae": ((28, 28, 1), self._vae),
            "dcgan": ((32,), stack(
                lambda: k.Dense(4 * 4 * 64, use_bias=False), k.BatchNormalization, k.LeakyReLU,
                lambda: k.Reshape((4, 4, 64)), lambda: k.Conv2DTranspose(32, 5, 2, "same", use_bias=False),
                k.BatchNormalization, k.LeakyReLU, lambda: k.Conv2DTranspose(3, 5, 2, "same", activation="tanh"))),
            "squeeze_excite": ((33, 33, 16), self._squeeze_excite),
            "conv3d": ((8, 16, 16, 3), stack(
                lambda: k.Conv3D(16, 3, padding="same", activation="relu"), lambda: k.Conv3D(16, 2, 2),
                k.BatchNormalization, lambda: k.Conv3D(16, 3, activation="selu"), k.GlobalAveragePooling3D,
                lambda: k.Dense(10))),
            "video": ((4, 32, 32, 3), stack(
                lambda: k.TimeDistributed(k.Conv2D(8, 3, 2, activation="relu")),
                lambda: k.TimeDistributed(k.Flatten()), lambda: k.LSTM(16), lambda: k.Dense(4))),
            "pictures": ((40, 40, 3), stack(
                lambda: k.Rescaling(1 / 127.5, -1), lambda: k.Resizing(30, 30), lambda: k.CenterCrop(24, 24),
                lambda: k.ZeroPadding2D(((1, 2), (0, 3))), lambda: k.Conv2D(8, 3, dilation_rate=2),
                k.UnitNormalization, lambda: k.UpSampling2D(3), lambda: k.Cropping2D(2),
                lambda: k.SpatialDropout2D(0.2), lambda: k.AveragePooling2D(3, 2, "same"), k.Softmax)),
            "dense": ((20,), stack(
                lambda: k.Dense(64, "selu"), k.BatchNormalization, lambda: k.Dense(64, "softplus"),
                k.LayerNormalization, lambda: k.Dense(32, "swish"), lambda: k.Dense(32, "softsign"),
                lambda: k.Dense(5, "exponential"))),
        }  # fmt: skip

    @staticmethod
    def _stack(*inner: Callable[[], Body]) -> Body:
        def body(x: Tensor) -> Tensor:
            for layer in inner:
                x = layer()(x)
            return x

        return body

    def _text(self, *inner: Callable[[], Body], masked: bool = False) -> Body:
        k = self.layers
        return self._stack(
            lambda: k.Embedding(WORDS, 32, mask_zero=masked), *inner, lambda: k.Dense(1, activation="sigmoid")
        )

    def _positions(self) -> Body:
        """Adds learnt positions to embedded words."""

        class Positions(self.layers.Layer):  # type: ignore[misc, name-defined]
            def build(self, shape: tuple[int, ...]) -> None:
                self.places = self.add_weight(name="places", shape=shape[1:], initializer="random_normal")

            def call(self, x: Tensor) -> Tensor:
                return x + self.places

        made: Body = Positions()
        return made

    def _transformer(self, x: Tensor, causal: bool = False) -> Tensor:
        """Gelu is that by tanh: of Keras 3's exact one tf2onnx leaves an `Erfc`, which ONNX does not have."""
        k, gelu = self.layers, self.keras.activations.gelu
        for _ in range(2):
            attended = k.MultiHeadAttention(4, 16)(x, x, use_causal_mask=causal)
            x = k.LayerNormalization()(k.Add()([x, attended]))
            wide = k.Dense(64, activation=lambda x: gelu(x, approximate=True))(x)
            x = k.LayerNormalization()(k.Add()([x, k.Dense(32)(wide)]))
        return x

    def _unet(self, x: Tensor) -> Tensor:
        k = self.layers

        def twice(x: Tensor, channels: int) -> Tensor:
            for _ in range(2):
                x = k.ReLU()(k.BatchNormalization()(k.Conv2D(channels, 3, padding="same")(x)))
            return x

        first = twice(x, 16)
        second = twice(k.MaxPooling2D()(first), 32)
        low = twice(k.MaxPooling2D()(second), 64)
        up = k.Conv2DTranspose(32, 3, strides=2, padding="same")(low)
        second = twice(k.Concatenate()([up, second]), 32)
        up = k.UpSampling2D(interpolation="bilinear")(second)
        return k.Conv2D(4, 1, activation="softmax")(twice(k.Concatenate()([up, first]), 16))

    def _vae(self, x: Tensor) -> list[Tensor]:
        k = self.layers
        low = k.Conv2D(32, 3, 2, "same", activation="relu")(k.Conv2D(16, 3, 2, "same", activation="relu")(x))
        hidden = k.Dense(16, "relu")(k.Flatten()(low))
        mean, spread = k.Dense(2)(hidden), k.Dense(2)(hidden)
        drawn = k.Lambda(lambda pair: pair[0] + tf.exp(0.5 * pair[1]) * 0.3)([mean, spread])
        high = k.Reshape((7, 7, 32))(k.Dense(7 * 7 * 32, "relu")(drawn))
        for channels in (32, 16):
            high = k.Conv2DTranspose(channels, 3, 2, "same", activation="relu")(high)
        return [mean, spread, k.Conv2DTranspose(1, 3, padding="same", activation="sigmoid")(high)]

    def _squeeze_excite(self, x: Tensor) -> Tensor:
        k = self.layers
        x = k.SeparableConv2D(32, 3, padding="same", activation="swish")(x)
        weight = k.Dense(32, "hard_sigmoid")(k.Dense(8, "relu")(k.GlobalAveragePooling2D(keepdims=True)(x)))
        x = k.DepthwiseConv2D(5, 2, "same")(k.Multiply()([x, weight]))
        return k.GroupNormalization(8)(k.PReLU(shared_axes=[1, 2])(x))

    def _wavenet(self, x: Tensor) -> Tensor:
        k = self.layers
        for rate in (1, 2, 4):
            common = {"padding": "causal", "dilation_rate": rate}
            x = k.Multiply()([k.Conv1D(16, 2, activation=each, **common)(x) for each in ("sigmoid", "tanh")])
        return k.Dense(5, "softmax")(k.GlobalMaxPooling1D()(k.AveragePooling1D(2)(x)))

    def _sequence_to_sequence(self, x: Tensor) -> Tensor:
        k = self.layers
        encoded, hidden, cell = k.LSTM(32, return_sequences=True, return_state=True)(x)
        decoded = k.LSTM(32, return_sequences=True)(x, initial_state=[hidden, cell])
        return k.Dense(10, "softmax")(k.Concatenate()([decoded, k.Attention()([decoded, encoded])]))


def names() -> list[str]:
    """Return the names of every network that can be made here."""
    found = []
    for prefix, library in LIBRARIES.items():
        with suppress(ImportError):
            small = _Networks(import_module(library)).all()
            found += [f"{prefix}:{name}" for name in (*small, *APPLICATIONS)]
    return found


def _build(name: str, double: bool) -> Any:
    """The network, by a name with a prefix, in one of two precisions."""
    prefix, own = name.split(":")
    keras = import_module(LIBRARIES[prefix])
    keras.backend.clear_session()
    kind = "float64" if double else "float32"
    keras.backend.set_floatx(kind)
    (keras.config.set_dtype_policy if prefix == "keras" else keras.mixed_precision.set_global_policy)(kind)
    if own in APPLICATIONS:
        extent = EXTENTS.get(own, 224)
        return getattr(keras.applications, APPLICATIONS[own])(weights=None, input_shape=(extent, extent, 3))
    shape, body = _Networks(keras).all()[own]
    given = keras.Input(shape, dtype="int32" if shape == TEXT else None)
    return keras.Model(given, body(given))


def _draw(model: Any, seed: int) -> None:
    """Statistics and scales of normalisations, and biases: zeros and ones hide errors."""
    draw = np.random.default_rng(seed)
    for weight in model.weights:
        name, shape = weight.name.rsplit("/", 1)[-1].removesuffix(":0"), weight.shape
        if name in ("moving_variance", "gamma", "variance"):
            weight.assign(draw.uniform(0.5, 1.5, shape))
        elif name in ("moving_mean", "beta", "bias", "mean", "alpha"):
            weight.assign(weight.numpy() + draw.normal(0, 0.1, shape))


def export(name: str, opset: int, batch: int, seed: int, file: Path) -> tuple[list[Array], Callable[[], list[Array]]]:
    """Write the network as ONNX; returns its inputs and what computes its results in double precision."""
    import tf2onnx  # type: ignore[import-not-found, unused-ignore]

    tf.random.set_seed(seed)
    import_module(LIBRARIES[name.split(":")[0]]).utils.set_random_seed(seed)
    model = _build(name, double=False)
    _draw(model, seed)
    (given,) = model.inputs
    kind = tf.as_dtype(given.dtype)
    draw, shape = np.random.default_rng(seed), (batch, *given.shape[1:])
    x = draw.integers(1, WORDS, shape) if kind.is_integer else draw.standard_normal(shape)
    x = x.astype(kind.as_numpy_dtype)
    if kind.is_integer:
        x[:, -5:] = 0  # of a text that ends earlier
    signature = [tf.TensorSpec((None, *shape[1:]), kind, name="x")]  # the batch stays open, as users leave it
    tf2onnx.convert.from_keras(model, signature, opset=opset, output_path=str(file))

    def in_double() -> list[Array]:
        wide = _build(name, double=True)
        wide.set_weights([weight.numpy().astype("float64") for weight in model.weights])
        found = wide(x if kind.is_integer else x.astype("float64"), training=False)
        return [part.numpy() for part in (found if isinstance(found, list | tuple) else [found])]

    return [x], in_double
