"""What a device would hold of a contrastive training step, and what the step costs.

Weights, gradients and embeddings are float32, first moments bfloat16 (`AdaFactorW`);
activations are float32, or bfloat16 where the precision is "mixed_bfloat16". A step is
at its largest after its loss, with everything that was kept for the backward pass, or
in the backward pass, with the gradients: the larger one is told.

Over `model` it is the paper's step, whose loss is split, too; here each device has all.
"""

import dataclasses
import functools
import math

from basic_tf import losses, slices, streaming_loss
from basic_tf.models import zoo
from basic_tf.models.values import values
from basic_tf.training import (
    contrastive_trainer,
    encoder_memory,
    step_cost,
    traced_memory,
)
from basic_tf.training.resting_memory import BFLOAT16, FLOAT32, at_rest

DATA_PARALLEL, PIPELINING, SLOTS = "data_parallel", "pipelining", "slots"
SPMD, SPMD_REMAT, SPMD_BLOCK = "spmd", "spmd_remat", "spmd_block"
OVER_MODEL = SPMD, SPMD_REMAT, SPMD_BLOCK
STRATEGIES = DATA_PARALLEL, PIPELINING, SLOTS, *OVER_MODEL
REMATERIALIZE = dict.fromkeys(STRATEGIES, encoder_memory.NOTHING) | {
    SPMD_REMAT: encoder_memory.WEIGHTLESS,
    SPMD_BLOCK: encoder_memory.BLOCK,
}

STREAMED_BLOCKS = 4  # logits, negatives, and two terms of their gradient


@dataclasses.dataclass(frozen=True)
class Plan:
    """A strategy's step on one device.

    Attributes:
        strategy: one of `STRATEGIES`.
        microbatch_size: examples that go through an encoder at a time, of a device.
        moment: "loss" or "backward", when most is held.
        parts: bytes held then, by what they are.
        flops: of the step, of all devices: two a multiply-add.
        wire_bytes: that a device sends in a step, by what they are.
    """

    strategy: str
    microbatch_size: int
    moment: str
    parts: dict
    flops: int
    wire_bytes: dict

    @property
    def total_bytes(self):
        return sum(self.parts.values())

    @property
    def step_bytes(self):
        """Those that are not held between steps."""
        between = "weights", "moments", "batch"
        return self.total_bytes - sum(self.parts[part] for part in between)


class Planner:
    """Plans of a model's training steps.

    Args:
        configuration: as `zoo.configuration` returns it.
        batch_size: B, of all devices together.
        num_devices: that share the batch.
        num_model: devices that share a copy of the weights, where they are split.
        device_kind: "tpu" counts one copy of each value, as XLA fuses operations into
            layers; "cpu" and "gpu" what operations keep that run one by one, and both
            encoders side by side.
        vocabulary_size: token ids; by default the paper's.

    Raises:
        ValueError: for another `device_kind`, and for devices that do not divide the
            batch or that `num_model` does not divide.
    """

    def __init__(
        self,
        configuration,
        batch_size,
        num_devices=1,
        num_model=1,
        device_kind="tpu",
        vocabulary_size=None,
    ):
        if device_kind not in encoder_memory.DEVICE_KINDS:
            known = ", ".join(encoder_memory.DEVICE_KINDS)
            raise ValueError(f"device_kind {device_kind!r} is none of {known}")
        if num_devices % num_model:
            sizes = slices.divisors(num_devices)
            raise ValueError(
                f"model {num_model} does not divide {num_devices} devices; use one of "
                f"{slices.nearest(sizes, num_model)}"
            )
        if batch_size % num_devices:
            nearest = max(1, round(batch_size / num_devices)) * num_devices
            raise ValueError(
                f"{num_devices} devices do not divide batch size {batch_size}; "
                f"use a multiple of {num_devices} such as {nearest}"
            )
        self.batch_size, self.num_devices = batch_size, num_devices
        self.num_model, self.device_kind = num_model, device_kind
        self.dim = configuration["embedding_dim"]
        is_half = configuration["precision"] == "mixed_bfloat16"
        self._bytes_per_value = BFLOAT16 if is_half else FLOAT32
        self._encoders = zoo.without_weights(configuration, vocabulary_size)

    @property
    def examples(self):
        """Of the batch on each device."""
        return self.batch_size // self.num_devices

    def plan(self, strategy, microbatch_size=None):
        """The `Plan` of a strategy.

        Args:
            strategy: one of `STRATEGIES`.
            microbatch_size: of a device, a divisor of its part of the batch, which is
                the default.

        Raises:
            ValueError: for another strategy or size.
        """
        if strategy not in REMATERIALIZE:
            raise ValueError(
                f"strategy {strategy!r} is none of {', '.join(STRATEGIES)}"
            )
        size = microbatch_size or self.examples
        if size not in self.microbatch_sizes(strategy):
            raise ValueError(self._refusal(strategy, size))
        moment, parts = self._parts(strategy, size)
        costs = self._flops(strategy, size), self._wire_bytes(strategy, size)
        return Plan(strategy, size, moment, parts, *costs)

    def _refusal(self, strategy, size):
        """Why a strategy cannot take a size of microbatches."""
        if strategy == DATA_PARALLEL:
            return f"{strategy} takes the {self.examples} examples of a device at once"
        sizes = self.microbatch_sizes(strategy)
        even = "even and " if strategy == SLOTS else ""
        return (
            f"{strategy}: microbatch size {size} must be {even}a divisor of the "
            f"{self.examples} examples of a device; use one of "
            f"{slices.nearest(sizes, size)}"
        )

    def microbatch_sizes(self, strategy):
        """The sizes that a strategy can take, from small to large."""
        if strategy == DATA_PARALLEL:
            return [self.examples]
        divisors = slices.divisors(self.examples)
        if strategy == SLOTS:  # a microbatch is taken in halves
            return [d for d in divisors if d % 2 == 0 or d == self.examples]
        return divisors

    def largest(self, strategy, memory_bytes):
        """The `Plan` of the largest microbatch that fits; None where none does."""
        for size in reversed(self.microbatch_sizes(strategy)):
            plan = self.plan(strategy, size)
            if plan.total_bytes <= memory_bytes:
                return plan
        return None

    def _parts(self, strategy, size):
        """`(moment, bytes held at that moment by what they are)`."""
        whole = size == self.examples
        memories = self._memories(REMATERIALIZE[strategy])
        resting = self._resting(strategy)
        both = FLOAT32 * 2 * self.examples * self.dim
        held = {
            "weights": resting.weights,
            "moments": resting.first_moments + resting.second_moments,
            "batch": self._batch_bytes(),
            "gradients": 0,
            "activations": 0,
            "embeddings": both,
            "similarities": 0,
            "gathered": resting.largest_split,
        }
        kept = sum(memory.kept.bytes(size) for memory in memories) if whole else 0
        loss = held | {"activations": kept, "similarities": self._loss_bytes}
        backward = held | {
            "embeddings": 2 * both,
            "gradients": self._gradient_bytes(strategy, whole, resting),
            "activations": self._activation_bytes(strategy, memories, size),
        }
        moments = {"loss": loss, "backward": backward}
        moment = max(moments, key=lambda name: sum(moments[name].values()))
        return moment, moments[moment]

    def _activation_bytes(self, strategy, memories, size):
        """At most, in the passes of Algorithm 1 or in the plain ones."""
        kept = [memory.kept.bytes(size) for memory in memories]
        whole = size == self.examples
        twice = strategy == SLOTS and not whole
        peaks = [memory.peak(size, twice) for memory in memories]
        if whole:
            # One encoder's backward pass, what the others have kept.
            return sum(kept) + max(p - k for p, k in zip(peaks, kept, strict=True))
        return max(peaks) if self.device_kind == "tpu" else sum(peaks)

    def _gradient_bytes(self, strategy, whole, resting):
        """Of the sums over microbatches, and of the gradients of one of them."""
        sums = resting.trained
        if strategy == SLOTS:
            # What bfloat16 first moments cannot hold; squares and their contrasts.
            sums = resting.first_moments + 2 * resting.second_moments
        if whole:
            return (
                resting.largest + resting.trained + (sums if strategy == SLOTS else 0)
            )
        if self.device_kind == "tpu":
            # XLA adds each to its sum, in place, as soon as it is there.
            return sums + resting.largest * (2 if strategy == SLOTS else 1)
        # A loop of operations holds the sums that it starts from and those that it ends
        # with, beside the gradients between.
        return 2 * sums + resting.trained

    @functools.lru_cache  # noqa: B019 (a planner does not outlive its plans)
    def _resting(self, strategy):
        encoders = [encoder for encoder, _ in self._encoders]
        return at_rest(encoders, self.num_model if strategy in OVER_MODEL else 1)

    @functools.lru_cache  # noqa: B019
    def _memories(self, rematerialize):
        of_device = encoder_memory.one_by_one
        if self.device_kind == "tpu":
            of_device = encoder_memory.on_xla
        return [
            of_device(encoder, shape, rematerialize, self._bytes_per_value)
            for encoder, shape in self._encoders
        ]

    def _batch_bytes(self):
        per_example = sum(math.prod(shape) for _, shape in self._encoders)
        return FLOAT32 * self.examples * per_example

    @functools.cached_property
    def _loss_bytes(self):
        """Of the loss and its gradients, beside the embeddings of this device."""
        pair = self.examples, self.dim
        if contrastive_trainer.is_dense(self.batch_size, self.num_devices):
            return traced_memory.traced_peak(
                lambda *inputs: losses.contrastive_loss(*inputs)[0], pair, pair, ()
            )
        images = slices.largest_divisor(
            self.examples, streaming_loss.BLOCK_ELEMENTS // self.batch_size
        )
        blocks = STREAMED_BLOCKS * images * self.batch_size
        own = 2 * math.prod(pair)  # gradients by images, in blocks and joined
        texts = self.batch_size * self.dim  # gathered, and their gradients
        texts *= 1 if self.num_devices == 1 else 2
        return FLOAT32 * (blocks + own + texts)

    @functools.cached_property
    def _multiply_adds(self):
        """`(forward, computed again by rematerialization)` of an example."""
        made = [value for each in self._encoders for value in values(*each)]
        return (
            sum(value.multiply_adds for value in made),
            sum(value.multiply_adds for value in made if not value.weighted),
        )

    def _flops(self, strategy, size):
        forward, weightless = self._multiply_adds
        again = {SPMD_REMAT: weightless, SPMD_BLOCK: forward}
        of_example = step_cost.multiply_adds(
            forward,
            microbatched=size < self.examples,
            in_slots=strategy == SLOTS,
            recomputed=again.get(strategy, 0),
        )
        return 2 * self.batch_size * of_example

    def _wire_bytes(self, strategy, size):
        resting = self._resting(strategy)
        count = self.examples // size
        passes = 2 + (count > 1) + (strategy == SPMD_BLOCK)
        return {
            "weights": step_cost.weight_traffic(
                self._resting(DATA_PARALLEL).trained - resting.split,
                resting.split,
                (self.num_devices // self.num_model, self.num_model),
                gathers=count * passes,
                scatters=count,
            ),
            "embeddings": step_cost.embedding_traffic(
                self.batch_size, self.dim, self.num_devices
            ),
        }
