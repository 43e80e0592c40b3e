"""What a training step costs: multiply-adds, and bytes between devices."""

FLOAT32 = 4


def multiply_adds(forward, microbatched, in_slots=False, recomputed=0):
    """Of a step, an example.

    Args:
        forward: multiply-adds of a forward pass; the backward pass takes twice as many.
        microbatched: whether Algorithm 1 takes a second forward pass (BASIC section 4).
        in_slots: whether a second backward pass makes the contrast of the halves of a
            microbatch, see `slot_accumulation`.
        recomputed: multiply-adds that rematerialization does again.
    """
    return (
        3 * forward
        + forward * microbatched
        + 2 * forward * (microbatched and in_slots)
        + recomputed
    )


def all_gather(num_bytes, num_devices):
    """Bytes that a device sends in a ring, for `num_bytes` on each at the end."""
    return num_bytes * (num_devices - 1) // num_devices


def all_reduce(num_bytes, num_devices):
    """Bytes that a device sends in a ring, for a sum of `num_bytes`."""
    return 2 * all_gather(num_bytes, num_devices)


def embedding_traffic(batch_size, embedding_dim, num_devices):
    """Bytes that a device sends for the loss: texts gathered, their gradients summed.

    Args:
        batch_size: B of all devices.
        embedding_dim: D.
        num_devices: that the batch is split over.
    """
    texts = FLOAT32 * batch_size * embedding_dim
    return all_gather(texts, num_devices) + all_reduce(texts, num_devices)


def weight_traffic(whole, split, mesh, gathers=0, scatters=0):
    """Bytes that a device sends for weights and their gradients.

    Args:
        whole: bytes of the weights that every device has whole.
        split: bytes, of all devices together, of those that are in parts.
        mesh: `(batch, model)`, numbers of devices.
        gathers: passes that gather the parts in a step.
        scatters: passes whose gradients are scattered to them.
    """
    num_batch, num_model = mesh
    return (
        all_reduce(whole, num_batch * num_model)
        + all_reduce(split // num_model, num_batch)
        + (gathers + scatters) * all_gather(split, num_model)
    )
