"""The devices of a step as a DTensor mesh, and where its tensors are on it.

Weights rest split over the axis `model`; a layer that reads one gets it whole, and the
gradient comes back split (BASIC section 5). Examples are split over all devices. A
DTensor layout gives an axis of a tensor to one axis of the mesh alone, so that with
both axes longer than 1 there are two meshes of the same devices: one of two axes for
what is split, and one of a single axis for everything else.
"""

import contextlib
import dataclasses

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

BATCH, MODEL, ALL = "batch", "model", "all"
UNSHARDED = dtensor.UNSHARDED
_entered = []


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Devices in rows of `model` devices that hold the weights once.

    Attributes:
        weights: `dtensor.Mesh` of what is split over `model`.
        examples: `dtensor.Mesh` of one axis, of everything else.
    """

    weights: dtensor.Mesh
    examples: dtensor.Mesh

    @property
    def num_devices(self):
        return self.examples.size

    @property
    def num_shards(self):
        """Parts that a weight is split into."""
        return self.weights.dim_size(MODEL)

    def replicated(self, rank):
        """Layout of what every device has whole."""
        return dtensor.Layout.replicated(self.examples, rank)

    def by_example(self, rank, axis=0):
        """Layout of what has an axis of examples."""
        specs = [UNSHARDED] * rank
        specs[axis] = self.examples.dim_names[0]
        return dtensor.Layout(specs, self.examples)

    @property
    def has_both_axes(self):
        """Whether what is split and what is not are on meshes of their own."""
        return self.weights != self.examples

    def layout(self, rank, axis=None, of_split=False):
        """Layout of a variable.

        Args:
            rank: number of its axes.
            axis: the one that it is split along; None where it is whole.
            of_split: whether it belongs to a variable that is split.
        """
        if axis is None:
            mesh = self.weights if of_split else self.examples
            return dtensor.Layout.replicated(mesh, rank)
        specs = [UNSHARDED] * rank
        specs[axis] = MODEL
        return dtensor.Layout(specs, self.weights)

    def split_examples(self, tensor):
        """`[n, ...]` of examples, split over the devices."""
        return dtensor.relayout(tensor, self.by_example(len(tensor.shape)))

    def gather_examples(self, tensor):
        """`[n, ...]` of examples that are split over the devices, whole on each."""
        tensor = self.split_examples(tensor)
        return dtensor.relayout(tensor, self.replicated(len(tensor.shape)))

    def gather(self, weight, layout):
        """A weight of a layout, whole on every device."""
        rank = len(weight.shape)
        weight = dtensor.relayout(weight, dtensor.Layout.replicated(layout.mesh, rank))
        if layout.mesh == self.examples:
            return weight
        return dtensor.copy_to_mesh(weight, self.replicated(rank))


def lay_out(value, layout):
    """An array on a mesh: every device of this process gets its part of it."""
    mesh = layout.mesh
    parts = []
    for place in mesh.local_device_locations():
        part = value
        for axis, name in enumerate(layout.sharding_specs):
            if name != UNSHARDED:
                part = np.split(part, mesh.dim_size(name), axis)[place[name]]
        parts.append(part)
    return dtensor.pack(parts, layout)


def fetch(tensor):
    """The value of a tensor on a mesh, from the first device."""
    mesh = dtensor.fetch_layout(tensor).mesh
    whole = dtensor.Layout.replicated(mesh, len(tensor.shape))
    return dtensor.unpack(dtensor.relayout(tensor, whole))[0]


@contextlib.contextmanager
def on(mesh, layouts):
    """Lets a step run on a mesh.

    Args:
        mesh: `Mesh`.
        layouts: of each variable, by the id of the Keras variable.
    """
    _entered.append((mesh, layouts))
    try:
        yield
    finally:
        _entered.pop()


def here(variable, value):
    """The value of a variable, as an operation of the graph that is being traced.

    DTensor cannot compile a loop that passes a value from outside through the
    `IdentityN` of a custom gradient.
    """
    if not _entered:
        return value
    _, layouts = _entered[-1]
    return dtensor.relayout(value, layouts[id(variable)])


def whole(variable, value):
    """What a layer gets that reads a variable of this value in a step."""
    if not _entered:
        return value
    mesh, layouts = _entered[-1]
    if id(variable) in layouts:
        return mesh.gather(value, layouts[id(variable)])
    return value


def beside(variable, scalars):
    """Scalars of the examples' mesh, on that of a variable."""
    if not _entered:
        return scalars
    mesh, layouts = _entered[-1]
    layout = layouts.get(id(variable))
    if layout is None or layout.mesh == mesh.examples:
        return scalars
    there = dtensor.Layout.replicated(layout.mesh, 0)
    return [dtensor.copy_to_mesh(scalar, there) for scalar in scalars]


def among_examples(variable, scalar):
    """A scalar of the mesh of a variable, on that of the examples."""
    if not _entered:
        return scalar
    mesh, layouts = _entered[-1]
    layout = layouts.get(id(variable))
    if layout is None or layout.mesh == mesh.examples:
        return scalar
    return dtensor.copy_to_mesh(scalar, mesh.replicated(0))


def current():
    """The mesh that the step runs on, or None."""
    return _entered[-1][0] if _entered else None


def parse(text):
    """The sizes of a mesh, `(batch, model)`, from "batch:2,model:4".

    An axis that is left out has one device.

    Raises:
        ValueError: for anything else.
    """
    sizes = {}
    for part in text.split(","):
        name, _, size = part.strip().partition(":")
        if name not in (BATCH, MODEL) or name in sizes or not size.isdecimal():
            raise ValueError(f"mesh {text!r} is not of the form batch:2,model:4")
        sizes[name] = int(size)
    if min(sizes.values()) < 1:
        raise ValueError(f"mesh {text!r} has an axis without devices")
    return sizes.get(BATCH, 1), sizes.get(MODEL, 1)


def make_mesh(text, kind=None):
    """A `Mesh` of the devices of this machine; must come before their first use.

    Args:
        text: see `parse`.
        kind: "TPU", "GPU" or "CPU"; where None, the first of them that is there.

    Raises:
        ValueError: if there are fewer devices than the mesh has, or for a bad `text`.
    """
    num_batch, num_model = parse(text)
    kind = kind or next(
        kind for kind in ("TPU", "GPU", "CPU") if tf.config.list_logical_devices(kind)
    )
    count, available = num_batch * num_model, tf.config.list_logical_devices(kind)
    if len(available) < count:
        raise ValueError(
            f"mesh {text!r} needs {count} devices; there are {len(available)} {kind}"
        )
    if kind == "TPU":
        dtensor.initialize_accelerator_system(kind)
    devices = [f"{kind}:{index}" for index in range(count)]
    if num_batch == 1:
        mesh = dtensor.create_mesh([(MODEL, num_model)], devices=devices)
        return Mesh(mesh, mesh)
    return Mesh(
        dtensor.create_mesh([(BATCH, num_batch), (MODEL, num_model)], devices=devices),
        dtensor.create_mesh([(ALL, count)], devices=devices),
    )
