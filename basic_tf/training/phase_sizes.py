"""Which batches and microbatches a phase can train with, on its devices."""

import tensorflow as tf

from basic_tf import slices
from basic_tf.training import microbatching, phase_optimizer, slot_accumulation
from basic_tf.training.contrastive_trainer import MAX_DENSE_BATCH_SIZE, is_dense


def check(config, mesh=None):
    """Refuses sizes, and what depends on them, that a phase cannot train with.

    Args:
        config: see `phases.make_phase`.
        mesh: `Mesh` that the steps run on, if any.

    Raises:
        ValueError: with the field, its value, and what would do.
    """
    num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if config.batch_size % num_replicas:
        sizes = range(num_replicas, config.batch_size + 2 * num_replicas, num_replicas)
        raise ValueError(
            f"batch_size {config.batch_size} is not a multiple of the {num_replicas} "
            f"replicas; use one of {slices.nearest(sizes, config.batch_size)}"
        )
    of_replica = config.batch_size // num_replicas
    of = f" of each of {num_replicas} replicas" if num_replicas > 1 else ""
    for field in ("microbatch_image", "microbatch_text"):
        if field in config:
            microbatching.check_size(field, config[field], of_replica, of)
    if config.get("accumulate") == "slots":
        _check_slots(config, of_replica)
    if mesh is not None:
        _check_on_mesh(config, mesh)


def _check_on_mesh(config, mesh):
    if config.kind == "simclr":
        raise ValueError("kind simclr does not run on a mesh; use another strategy")
    if config.kind == "contrastive" and not is_dense(config.batch_size):
        raise ValueError(
            f"batch_size {config.batch_size} needs the streaming loss, which does not "
            f"run on a mesh; use at most {MAX_DENSE_BATCH_SIZE}"
        )
    for field in ("microbatch_image", "microbatch_text"):
        size = config.get(field) or config.batch_size
        if size % mesh.num_devices:
            raise ValueError(
                f"{field} {size} is not a multiple of the {mesh.num_devices} devices"
            )
    if config.rematerialization != "none" and mesh.has_both_axes:
        _check_in_one_piece(config)
    if config.get("accumulate") == "slots":
        raise ValueError("accumulate slots does not run on a mesh; use buffer")
    if config.batch_norm == "global":
        raise ValueError("batch_norm global does not run on a mesh; use microbatch")


def _check_in_one_piece(config):
    # DTensor does not compile a loop whose custom gradients copy between two meshes.
    for field in ("microbatch_image", "microbatch_text"):
        if config.get(field, 0) not in (0, config.batch_size):
            raise ValueError(
                f"{field} {config[field]} with rematerialization "
                f"{config.rematerialization} does not run on a mesh of both batch and "
                "model; use 0, or model alone"
            )


def _check_slots(config, of_replica):
    if config.kind == "supervised":
        raise ValueError("accumulate slots is for contrastive phases")
    if isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy):
        raise ValueError("accumulate slots does not run on a TPU yet; use buffer")
    if config.max_non_finite_steps:
        raise ValueError(
            f"max_non_finite_steps {config.max_non_finite_steps} must be 0 with "
            "accumulate slots, which take a gradient before its end is known"
        )
    optimizer = phase_optimizer.make_optimizer(config)
    for field in ("microbatch_image", "microbatch_text"):
        slot_accumulation.check(optimizer, config[field], of_replica)
