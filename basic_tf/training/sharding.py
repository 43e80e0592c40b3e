"""A trainer's step on a mesh: weights and moments at rest in parts (BASIC section 5).

The step is a function of values. All variables are read before any is written: a
DTensor function that reads a variable after it has written to it may get the old value.
"""

import dataclasses

import keras
import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

from basic_tf import slices
from basic_tf.optimizers import groups
from basic_tf.training import mesh as meshes

MIN_SPLIT_SIZE = 2**14  # numbers in a weight below which it is not worth its gather


@dataclasses.dataclass(frozen=True)
class LayoutRule:
    """What a table of rules says of how a variable rests.

    Attributes:
        split: whether in parts: along its input channels (the second last axis), or the
            next axis that the number of parts divides.
    """

    split: bool = True


_WHOLE = r"norm|/se/|/depthwise/|/relative_bias$|/log_scale$"
LAYOUTS = ((_WHOLE, {"split": False}), (rf"^(?!.*({_WHOLE}))", {}))


def split_axes(variables, num_shards, rules=LAYOUTS, min_size=None):
    """The axis that each variable is split along.

    Args:
        variables: Keras variables.
        num_shards: parts.
        rules: see `groups.match_rules`, of `LayoutRule`.
        min_size: numbers in the smallest variable that is split; `MIN_SPLIT_SIZE` where
            None.

    Returns:
        List, parallel to the variables, of axes from 0, or None for what every device
        has whole: what the rules say, what is small, what has less than two axes, and
        what no axis of can be divided.

    Raises:
        ValueError: as `groups.match_rules`.
    """
    min_size = MIN_SPLIT_SIZE if min_size is None else min_size
    matched = groups.match_rules(variables, rules, LayoutRule)
    return [
        _split_axis(tuple(variable.shape), num_shards, min_size) if rule.split else None
        for variable, rule in zip(variables, matched, strict=True)
    ]


def _split_axis(shape, num_shards, min_size):
    rank = len(shape)
    if rank < 2 or np.prod(shape) < min_size:
        return None
    order = [rank - 2, rank - 1, *range(rank - 2)]
    return next((axis for axis in order if shape[axis] % num_shards == 0), None)


class ShardedStep:
    """The step of a trainer on a mesh.

    Args:
        trainer: built and compiled `Trainer` with a `RuledOptimizer`, itself built.
        mesh: `Mesh`.
        min_size: see `split_axes`.
        step: what a step is, of a batch; the trainer's `train_step` where None.
    """

    def __init__(self, trainer, mesh, min_size=None, step=None):
        self.trainer, self.mesh = trainer, mesh
        self._function = step or trainer.train_step
        optimizer = trainer.optimizer
        variables = [
            *trainer.variables,
            *trainer.metrics_variables,
            *optimizer.variables,
        ]
        variables = {id(v): v for v in variables}
        slots = optimizer.slot_axes
        own = [v for v in variables.values() if id(v) not in slots]
        axes = {
            id(variable): axis
            for variable, axis in zip(
                own, split_axes(own, mesh.num_shards, min_size=min_size), strict=True
            )
        }
        of_split = set()
        for slot, (variable, kept) in slots.items():
            axis = axes[variable]
            axes[slot] = kept.index(axis) if axis in kept else None
            if axis is not None:
                of_split.add(slot)
        self.variables = list(variables.values())
        self.layouts = [
            mesh.layout(len(v.shape), axes[id(v)], id(v) in of_split)
            for v in self.variables
        ]
        self.layout_of = {id(v): layout for v, layout in self._laid_out()}
        optimizer.beside = meshes.beside
        self.stored = None
        self._step = tf.function(self._run, autograph=False)

    @property
    def device_bytes(self):
        """What a device holds of weights, statistics and moments at rest."""
        return sum(self._part_bytes(*pair) for pair in self._laid_out())

    @property
    def whole_bytes(self):
        """What a device would hold of them with nothing split."""
        return sum(_num_bytes(variable) for variable, _ in self._laid_out())

    def table(self):
        """What is split how, and bytes a device, as text."""
        lines = [
            f"  {v.path} {tuple(v.shape)} along axis "
            f"{layout.sharding_specs.index(meshes.MODEL)}: "
            f"{self._part_bytes(v, layout)} of {_num_bytes(v)} bytes a device"
            for v, layout in self._laid_out()
            if meshes.MODEL in layout.sharding_specs
        ]
        mesh, num_whole = self.mesh, len(self.variables) - len(lines)
        share = self.device_bytes / self.whole_bytes
        return "\n".join(
            [
                f"split over {mesh.num_shards} of {mesh.num_devices} devices:",
                *lines,
                f"  {num_whole} variables whole on every device",
                f"  {self.device_bytes} bytes a device, {share:.3f} of all",
            ]
        )

    def _laid_out(self):
        return zip(self.variables, self.layouts, strict=True)

    def _part_bytes(self, variable, layout):
        is_split = meshes.MODEL in layout.sharding_specs
        return _num_bytes(variable) // (self.mesh.num_shards if is_split else 1)

    def load(self):
        """Takes the values of the variables to the mesh."""
        self.stored = [
            dtensor.DVariable(meshes.lay_out(v.numpy(), layout), name=v.name)
            for v, layout in self._laid_out()
        ]

    def store(self):
        """Takes the values on the mesh back to the variables."""
        if self.stored is None:
            return
        for variable, stored in zip(self.variables, self.stored, strict=True):
            variable.assign(meshes.fetch(stored.read_value()))

    def __call__(self, batch):
        """A step; what the trainer reports of it.

        Args:
            batch: `{name: [B, ...]}` arrays or tensors.
        """
        if self.stored is None:
            self.load()
        fields = {name: self._field(name, value) for name, value in batch.items()}
        # Whoever reads and resets metrics does so beside the mesh.
        for variable, stored in self._metrics():
            stored.assign(meshes.lay_out(variable.numpy(), stored.layout))
        logs = self._step(fields)
        for variable, stored in self._metrics():
            variable.assign(meshes.fetch(stored.read_value()))
        return {name: meshes.fetch(value) for name, value in logs.items()}

    def _metrics(self):
        metrics = {id(variable) for variable in self.trainer.metrics_variables}
        for variable, stored in zip(self.variables, self.stored, strict=True):
            if id(variable) in metrics:
                yield variable, stored

    def _run(self, fields):
        values = [stored.read_value() for stored in self.stored]
        mapping = list(zip(self.variables, values, strict=True))
        sizes = self.trainer.microbatch_sizes
        batch = {
            name: slices.Parts(value) if name in sizes else value
            for name, value in fields.items()
        }
        with (
            keras.StatelessScope(mapping, initialize_variables=False) as scope,
            meshes.on(self.mesh, self.layout_of),
        ):
            logs = self._function(batch)
        after = [scope.state_mapping[id(variable)] for variable in self.variables]
        for stored, old, new in zip(self.stored, values, after, strict=True):
            if new is not old:
                stored.assign(dtensor.relayout(new, stored.layout))
        return logs

    def _field(self, name, value):
        value = np.asarray(value)
        size = self.trainer.microbatch_sizes.get(name)
        if size is None:
            return meshes.lay_out(value, self.mesh.by_example(value.ndim))
        value = value.reshape(-1, size or len(value), *value.shape[1:])
        return meshes.lay_out(value, self.mesh.by_example(value.ndim, axis=1))


def _num_bytes(variable):
    return int(np.prod(variable.shape)) * tf.as_dtype(variable.dtype).size
