"""What a model costs, counted without making its weights."""

import concurrent.futures
import dataclasses
import math
import operator

import keras

from basic_tf.models.values import values


@dataclasses.dataclass(frozen=True)
class Description:
    """What an encoder costs.

    Attributes:
        parameters: that are trained; the moving statistics of norms are not.
        multiply_adds: of the forward pass of one example: the papers' FLOPs, half of
            its additions and multiplications. Products with weights, and attention's.
        activation_bytes: of one example, kept for the backward pass where nothing is
            rematerialized: what every layer makes, once. TensorFlow takes GELU and most
            norms apart and keeps twice as much (CoAtNet-0); of ReLU it keeps the output
            alone, two thirds as much (ResNet-50).
        rematerialized_bytes: the same where the outputs of layers with weights are kept
            and the others computed again (BASIC section 5).
    """

    parameters: int
    multiply_adds: int
    activation_bytes: int
    rematerialized_bytes: int

    def __add__(self, other):
        mine, others = dataclasses.astuple(self), dataclasses.astuple(other)
        return Description(*map(operator.add, mine, others))


def describe(make, shape, bytes_per_value=4):
    """Describes an encoder.

    Args:
        make: makes it; it is built here, without weights.
        shape: of its input, without the batch.
        bytes_per_value: 4 for activations in float32, 2 in bfloat16.

    Returns:
        A `Description`.

    Example:
        >>> from keras import layers
        >>> describe(lambda: layers.Dense(10), (3,))
        Description(parameters=40, multiply_adds=30, activation_bytes=40, \
rematerialized_bytes=40)
    """
    encoder = without_weights(make, shape)
    made = list(values(encoder, shape))
    return Description(
        parameters=sum(
            math.prod(variable.shape) for variable in encoder.trainable_variables
        ),
        multiply_adds=sum(value.multiply_adds for value in made),
        activation_bytes=bytes_per_value * sum(value.size for value in made),
        rematerialized_bytes=bytes_per_value
        * sum(value.size for value in made if value.weighted),
    )


def without_weights(make, shape):
    """Builds a layer whose variables have shapes but no values.

    It can be called where a `keras.StatelessScope` gives values to all of them.

    Args:
        make: makes the layer.
        shape: of its input, without the batch.
    """

    def build():
        with keras.StatelessScope(initialize_variables=False):
            layer = make()
            layer.build((None, *shape))
        return layer

    # Keras lists variables to be initialized later, for each thread: in this one, any
    # other stateless scope would give them values when it ends.
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(build).result()
