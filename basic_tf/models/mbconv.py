"""MBConv, the convolutional block of CoAtNet, with squeeze-and-excitation."""

import keras
from keras import layers, ops

from basic_tf.models import precision
from basic_tf.models.residual import ResidualBlock


def batch_norm(name, momentum=0.98, epsilon=1e-3):
    """Batch norm as the convolution stages use it.

    The statistics average over about 50 steps, so that short runs have them, too.
    """
    return layers.BatchNormalization(momentum=momentum, epsilon=epsilon, name=name)


def padding_of(padding, strides, name):
    """How a 3x3 convolution is padded.

    Args:
        padding: "same" as TensorFlow: a stride of 2 over an even side pads it behind
            only; or "symmetric" as PyTorch: by one on each side, which looks elsewhere.
        strides: of the convolution; with 1 there is no difference.
        name: of the convolution.

    Returns:
        `(layers that go before the convolution, its own padding)`.

    Raises:
        ValueError: for another `padding`.
    """
    if padding not in ("same", "symmetric"):
        raise ValueError(f"padding {padding!r} is not same or symmetric")
    if padding == "same" or strides == 1:
        return [], "same"
    return [layers.ZeroPadding2D(1, name=f"{name}_padding")], "valid"


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class SqueezeExcitation(layers.Layer):
    """Scales each channel by a gate computed from the mean over all positions.

    Args:
        squeeze_filters: width of the bottleneck.
        activation: activation of the bottleneck.

    Input and output: `[B, H, W, C]`. Source: Hu et al. 2018.

    Example:
        >>> SqueezeExcitation(4)(keras.ops.ones((3, 8, 8, 16))).shape
        TensorShape([3, 8, 8, 16])
    """

    def __init__(self, squeeze_filters, activation="gelu", **kwargs):
        super().__init__(**kwargs)
        self.squeeze_filters = squeeze_filters
        self.activation = activation

    def build(self, input_shape):
        filters = input_shape[-1]
        self.reduce = layers.Conv2D(
            self.squeeze_filters, 1, activation=self.activation, name="reduce"
        )
        self.expand = layers.Conv2D(filters, 1, activation="sigmoid", name="expand")
        self.reduce.build((None, 1, 1, filters))
        self.expand.build((None, 1, 1, self.squeeze_filters))

    def call(self, inputs):
        mean = ops.mean(inputs, axis=(1, 2), keepdims=True)
        return inputs * self.expand(self.reduce(mean))

    def get_config(self):
        return super().get_config() | {
            "squeeze_filters": self.squeeze_filters,
            "activation": self.activation,
        }


@keras.saving.register_keras_serializable("basic_tf")
@precision.handed_down
class MBConv(ResidualBlock):
    """Pre-activation inverted bottleneck with squeeze-and-excitation (CoAtNet A.1).

    Norm, 1x1 expansion, norm, activation, depthwise 3x3, norm, activation, squeeze and
    excitation, 1x1 projection; added to the shortcut.

    Args:
        filters: output width.
        strides: 1 or 2.
        stride_on: the convolution that takes the stride, "expand" as CoAtNet prints it
            (it never looks at three of four positions) or "depthwise".
        expansion_ratio: expanded width over that of `expansion_base`.
        expansion_base: "input" or "output". They differ in a stage's first block, where
            CoAtNet's text fits both, but the figures of its table the output better.
        squeeze_ratio: squeezed width over that of `squeeze_base`.
        squeeze_base: "input" or "output", 0.2 % apart in parameters; the output is the
            nearer for every CoAtNet. Of the expanded width, CoAtNet-4 would have 284M
            for 275M.
        activation: "gelu" in the paper.
        squeeze_activation: of squeeze and excitation; `activation` where None. "silu"
            in timm's, as in EfficientNet.
        pooling: see `ResidualBlock`.
        padding: of the depthwise convolution, see `padding_of`.
        batch_norm_momentum, batch_norm_epsilon: of every norm; PyTorch's are 0.9 and
            1e-5.

    Input `[B, H, W, C]`, output `[B, ceil(H / strides), ceil(W / strides), filters]`.

    Raises:
        ValueError: for another `stride_on`, `expansion_base`, `squeeze_base`,
            `pooling` or `padding`.

    Example:
        >>> MBConv(32, strides=2)(keras.ops.ones((3, 8, 8, 16))).shape
        TensorShape([3, 4, 4, 32])
    """

    def __init__(
        self,
        filters,
        strides=1,
        stride_on="expand",
        expansion_ratio=4,
        expansion_base="input",
        squeeze_ratio=0.25,
        squeeze_base="input",
        activation="gelu",
        squeeze_activation=None,
        pooling="max",
        padding="same",
        batch_norm_momentum=0.98,
        batch_norm_epsilon=1e-3,
        **kwargs,
    ):
        super().__init__(filters, strides, pooling, **kwargs)
        if stride_on not in ("expand", "depthwise"):
            raise ValueError(f"stride_on {stride_on!r} is not expand or depthwise")
        bases = {"expansion_base": expansion_base, "squeeze_base": squeeze_base}
        for field, base in bases.items():
            if base not in ("input", "output"):
                raise ValueError(f"{field} {base!r} is not input or output")
        self.stride_on = stride_on
        self.expansion_ratio = expansion_ratio
        self.expansion_base = expansion_base
        self.squeeze_ratio = squeeze_ratio
        self.squeeze_base = squeeze_base
        self.activation = activation
        self.squeeze_activation = squeeze_activation
        self.padding = padding
        self.batch_norm_momentum = batch_norm_momentum
        self.batch_norm_epsilon = batch_norm_epsilon

    def build(self, input_shape):
        widths = {"input": input_shape[-1], "output": self.filters}
        expanded = widths[self.expansion_base] * self.expansion_ratio
        squeezed = max(1, int(widths[self.squeeze_base] * self.squeeze_ratio))
        self.build_shortcut(input_shape)
        strides = {"expand": 1, "depthwise": 1} | {self.stride_on: self.strides}
        pad, padding = padding_of(self.padding, strides["depthwise"], "depthwise")
        self.block = keras.Sequential(
            [
                self._norm("norm"),
                layers.Conv2D(
                    expanded, 1, strides["expand"], use_bias=False, name="expand"
                ),
                self._norm("expand_norm"),
                layers.Activation(self.activation, name="expand_activation"),
                *pad,
                layers.DepthwiseConv2D(
                    3,
                    strides["depthwise"],
                    padding=padding,
                    use_bias=False,
                    name="depthwise",
                ),
                self._norm("depthwise_norm"),
                layers.Activation(self.activation, name="depthwise_activation"),
                SqueezeExcitation(
                    squeezed, self.squeeze_activation or self.activation, name="se"
                ),
                layers.Conv2D(self.filters, 1, name="project"),
            ],
            name="block",
        )
        self.block.build(input_shape)

    def _norm(self, name):
        return batch_norm(name, self.batch_norm_momentum, self.batch_norm_epsilon)

    def call(self, inputs, training=None):
        return self.shortcut(inputs) + self.block(inputs, training=training)

    def get_config(self):
        return super().get_config() | {
            "stride_on": self.stride_on,
            "expansion_ratio": self.expansion_ratio,
            "expansion_base": self.expansion_base,
            "squeeze_ratio": self.squeeze_ratio,
            "squeeze_base": self.squeeze_base,
            "activation": self.activation,
            "squeeze_activation": self.squeeze_activation,
            "padding": self.padding,
            "batch_norm_momentum": self.batch_norm_momentum,
            "batch_norm_epsilon": self.batch_norm_epsilon,
        }
