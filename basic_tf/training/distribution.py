"""Strategies of `tf.distribute` by name: data parallelism over devices, machines."""

import tensorflow as tf


def _mirrored():
    """Over all GPUs of this machine, or its logical CPU devices."""
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices(
        "CPU"
    )
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _tpu():
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


STRATEGIES = {
    "default": tf.distribute.get_strategy,
    "mirrored": _mirrored,
    "multi_worker": tf.distribute.MultiWorkerMirroredStrategy,
    "tpu": _tpu,
}


def make_strategy(name):
    """A `tf.distribute.Strategy`; must come before TensorFlow's first operation.

    Args:
        name: "default" for one device; "mirrored" for all GPUs of this machine;
            "multi_worker" for the machines that the environment variable `TF_CONFIG`
            lists; "tpu" for the TPU that `TPU_NAME` names.

    Raises:
        ValueError: for another name.
    """
    if name not in STRATEGIES:
        raise ValueError(f"strategy {name!r} is none of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]()


def split_cpu(count):
    """Makes `count` devices of the CPU; must come before the first operation."""
    if count > 1:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * count,
        )


def is_chief():
    """Whether this process is the one of its strategy that writes files."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    return resolver.task_type == "chief" or resolver.task_id == 0
