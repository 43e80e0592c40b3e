"""Strategies of `tf.distribute` by name: data parallelism over devices, machines."""

import contextlib
import os
import tempfile

import tensorflow as tf
from absl import logging


def _mirrored():
    """Over all GPUs of this machine, or its logical CPU devices."""
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices(
        "CPU"
    )
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _multi_worker():
    if not os.environ.get("TF_CONFIG"):
        raise ValueError(
            "strategy multi_worker needs the environment variable TF_CONFIG, such as "
            '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
            '"task": {"type": "worker", "index": 0}}'
        )
    return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu():
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    except ValueError as error:
        raise ValueError(
            "strategy tpu finds no TPU; set the environment variable TPU_NAME to the "
            "name or address of one, or to local"
        ) from error
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


STRATEGIES = {
    "default": tf.distribute.get_strategy,
    "mirrored": _mirrored,
    "multi_worker": _multi_worker,
    "tpu": _tpu,
}


def make_strategy(name):
    """A `tf.distribute.Strategy`; must come before TensorFlow's first operation.

    Args:
        name: "default" for one device; "mirrored" for all GPUs of this machine;
            "multi_worker" for the machines that the environment variable `TF_CONFIG`
            lists; "tpu" for the TPU that `TPU_NAME` names.

    Raises:
        ValueError: for another name, or without the variable.
    """
    if name not in STRATEGIES:
        raise ValueError(f"strategy {name!r} is none of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]()


def distribute_batches(make_parts):
    """A data set that gives every replica of the current strategy its part of a batch.

    Args:
        make_parts: `(number of parts, those to give) -> tf.data.Dataset` of the parts
            of each batch, one after another.
    """
    strategy = tf.distribute.get_strategy()
    num_replicas = strategy.num_replicas_in_sync
    if num_replicas == 1:
        return make_parts(1, (0,))

    def of_machine(context):
        local = num_replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local
        # Without an end: parts that may run out have no shape that machines agree on.
        return make_parts(num_replicas, range(first, first + local)).repeat()

    return strategy.distribute_datasets_from_function(of_machine)


def momentum_dtype():
    """Storage of first moments: bfloat16, where the strategy can handle it."""
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        logging.info("first moments are float32: bfloat16 has no broadcast to machines")
        return "float32"
    return "bfloat16"


def split_cpu(count):
    """Makes `count` devices of the CPU; must come before the first operation."""
    if count > 1:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * count,
        )


def wait_for_all():
    """Comes back when every process of the strategy has come here."""
    strategy = tf.distribute.get_strategy()
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None)


@contextlib.contextmanager
def checkpoint_folder(folder):
    """Where this process is to write a checkpoint: all take part, one is kept."""
    if is_chief():
        yield folder
        return
    with tempfile.TemporaryDirectory() as unused:
        yield unused


def is_chief():
    """Whether this process is the one of its strategy that writes files."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    if "chief" in resolver.cluster_spec().as_dict():
        return resolver.task_type == "chief"
    return resolver.task_id == 0
