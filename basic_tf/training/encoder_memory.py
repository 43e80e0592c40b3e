"""What an encoder holds while it is trained: its activations, by rematerialization."""

import itertools

from basic_tf.models.values import values
from basic_tf.training import rematerialization, traced_memory
from basic_tf.training.traced_memory import Held, Passes

NOTHING, WEIGHTLESS, BLOCK = rematerialization.MODES
DEVICE_KINDS = ("tpu", "gpu", "cpu")


def on_xla(encoder, shape, rematerialize, bytes_per_value):
    """`Passes` where XLA fuses operations into layers: one copy of each value.

    The backward pass holds, beside what is kept, the gradients by what goes into and
    comes out of a layer. Where values are computed again, it is those of a block at a
    time.

    Args:
        encoder: built, with or without weights.
        shape: of its input, without the batch.
        rematerialize: "none" keeps all values; "weightless" the outputs of layers with
            weights (BASIC section 5); "block" what goes from block to block.
        bytes_per_value: of activations.

    Raises:
        ValueError: for another `rematerialize`.
    """
    return _of_values(encoder, shape, rematerialize, bytes_per_value, copies=1.0)


def one_by_one(encoder, shape, rematerialize, bytes_per_value):
    """`Passes` where each operation runs by itself: what TensorFlow's graph has.

    With rematerialization, which the graph does not show, a block that is computed
    again counts as many copies of its values as the whole graph keeps of all.

    Args and raises as `on_xla`.
    """
    traced = traced_memory.trace(encoder, shape)
    if rematerialize == NOTHING:
        return traced
    once = bytes_per_value * sum(value.size for value in values(encoder, shape))
    copies = traced.kept.per_example / once
    return _of_values(encoder, shape, rematerialize, bytes_per_value, copies)


def _of_values(encoder, shape, rematerialize, bytes_per_value, copies):
    made = list(values(encoder, shape))
    blocks = [
        list(block)
        for _, block in itertools.groupby(made, lambda v: v.name.split("/")[0])
    ]
    largest = max(sum(value.size for value in block) for block in blocks)
    recomputed = copies * bytes_per_value * largest
    if rematerialize == NOTHING:
        kept, recomputed = sum(value.size for value in made), 0
    elif rematerialize == WEIGHTLESS:
        kept = sum(value.size for value in made if value.weighted)
    elif rematerialize == BLOCK:
        kept = sum(block[-1].size for block in blocks)
    else:
        raise ValueError(
            f"rematerialize {rematerialize!r} is none of {NOTHING}, {WEIGHTLESS}, "
            f"{BLOCK}"
        )
    kept *= bytes_per_value
    pair = 2 * bytes_per_value * max(value.size for value in made)
    most = (Held(per_example=round(kept + recomputed + pair)),)
    return Passes(Held(per_example=kept), most, twice=most)
