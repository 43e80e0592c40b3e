"""What a replica of a training step knows of the others."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf


def _itself(tensors):
    return tensors


@dataclasses.dataclass(frozen=True)
class Replicas:
    """The replicas that take a step together; as it stands, a single one.

    Attributes:
        count: R.
        index: which of them this is, int or int32 scalar.
        gather: `[n, ...]` of each replica -> `[R * n, ...]` on all.
        total: tensors, nested -> their sums over the replicas, on all.
    """

    count: int = 1
    index: int = 0
    gather: Callable = _itself
    total: Callable = _itself

    def mean(self, tensors):
        """Tensors, nested -> their means over the replicas, on all."""
        return tf.nest.map_structure(
            lambda tensor: tensor / self.count, self.total(tensors)
        )


ONE_REPLICA = Replicas()


def own(variable):
    """This replica's copy of a Keras variable, which it may assign alone."""
    copies = tf.distribute.get_strategy().experimental_local_results(variable.value)
    if len(copies) == 1:
        return copies[0]
    context = tf.distribute.get_replica_context()
    index = tf.get_static_value(context.replica_id_in_sync_group)
    return copies[index % len(copies)]


def current():
    """Those of the `tf.distribute` strategy, for code that runs in a replica.

    Their collectives must stay outside of loops: `tf.distribute` refuses them there.
    """
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return ONE_REPLICA
    context = tf.distribute.get_replica_context()
    if context is None:
        raise ValueError("this must run in a replica, by strategy.run or fit")

    def total(tensors):
        if not tf.nest.flatten(tensors):
            return tensors  # which all_reduce does not take
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)

    def gather(tensor):
        if isinstance(context.strategy, tf.distribute.MultiWorkerMirroredStrategy):
            with tf.device(
                context.strategy.extended.worker_devices[0]
            ):  # which all_gather asks for
                tensor = tf.identity(tensor)
        return context.all_gather(tensor, axis=0)

    return Replicas(
        count=context.num_replicas_in_sync,
        index=tf.cast(context.replica_id_in_sync_group, tf.int32),
        gather=gather,
        total=total,
    )
