"""The shortcut that CoAtNet's blocks share."""

from keras import layers

POOLINGS = {"max": layers.MaxPooling2D, "average": layers.AveragePooling2D}


class ResidualBlock(layers.Layer):
    """What the two kinds of block share: the shortcut `Proj(Pool(x))` of CoAtNet A.2.

    Pooling where the block has a stride, a 1x1 convolution where the width changes, the
    identity otherwise. Subclasses build their own branch and add it.

    Args:
        filters: output width.
        strides: 1 or 2.
        pooling: "max" as CoAtNet A.2 has it, or "average" as timm's.

    Input `[B, H, W, C]`, shortcut `[B, ceil(H / strides), ceil(W / strides), filters]`.

    Raises:
        ValueError: for another `pooling`.
    """

    def __init__(self, filters, strides, pooling="max", **kwargs):
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling {pooling!r} is not {' or '.join(POOLINGS)}")
        self.filters = filters
        self.strides = strides
        self.pooling = pooling

    def build_shortcut(self, input_shape):
        """Builds what the shortcut needs for `input_shape`, `(B, H, W, C)`."""
        self.pool = self.project = None
        if self.strides > 1:
            pooling = POOLINGS[self.pooling]
            self.pool = pooling(self.strides, padding="same", name="pool")
        if input_shape[-1] != self.filters:
            self.project = layers.Conv2D(self.filters, 1, name="shortcut")
            self.project.build(input_shape)

    def shortcut(self, inputs):
        """`Proj(Pool(x))`."""
        if self.pool is not None:
            inputs = self.pool(inputs)
        return inputs if self.project is None else self.project(inputs)

    def compute_output_shape(self, input_shape):
        batch, height, width, _ = input_shape
        height, width = (
            None if side is None else -(-side // self.strides)
            for side in (height, width)
        )
        return batch, height, width, self.filters

    def get_config(self):
        return super().get_config() | {
            "filters": self.filters,
            "strides": self.strides,
            "pooling": self.pooling,
        }
