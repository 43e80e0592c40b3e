"""Plans of all strategies beside each other, and the one to use."""

from basic_tf.training import contrastive_trainer, encoder_memory, memory_plan, mesh

GB = 2**30


def parse_mesh(text, num_devices):
    """`{"batch": devices, "model": devices}` of a text such as "batch:512,model:4".

    Args:
        text: see `mesh.parse`; None for "batch" alone.
        num_devices: that the axes must come to.

    Raises:
        ValueError: for a text of another form, or axes of another number of devices.
    """
    if text is None:
        return {"batch": num_devices, "model": 1}
    num_batch, num_model = mesh.parse(text)
    if num_batch * num_model != num_devices:
        raise ValueError(
            f"mesh {text!r} has {num_batch * num_model} devices; there are "
            f"{num_devices}"
        )
    return {"batch": num_batch, "model": num_model}


def plan_all(planner, memory_bytes, microbatch_size=None):
    """A row a strategy: its plan, and what fits.

    Args:
        planner: `memory_plan.Planner`.
        memory_bytes: of a device.
        microbatch_size: of a device, where it takes microbatches; by default the
            largest that fits.

    Returns:
        List of `(plan, largest microbatch that fits or None)`; without "slots" for a
        size that has no halves.

    Raises:
        ValueError: for a size that does not divide the examples of a device.
    """
    rows = []
    for strategy in memory_plan.STRATEGIES:
        sizes = planner.microbatch_sizes(strategy)
        given = microbatch_size or sizes[0]
        if strategy == memory_plan.SLOTS and given not in sizes:
            continue
        largest = planner.largest(strategy, memory_bytes)
        if microbatch_size and strategy != memory_plan.DATA_PARALLEL:
            plan = planner.plan(strategy, microbatch_size)
        else:
            plan = largest or planner.plan(strategy, sizes[0])
        rows.append((plan, largest and largest.microbatch_size))
    return rows


def refusal(planner, plan):
    """Why `phase_sizes.check` refuses a plan as yet; "" where it does not."""
    strategy = plan.strategy
    if strategy == memory_plan.SLOTS and planner.device_kind == "tpu":
        return "on a TPU"
    if strategy not in memory_plan.OVER_MODEL:
        return ""
    if not contrastive_trainer.is_dense(planner.batch_size):
        limit = contrastive_trainer.MAX_DENSE_BATCH_SIZE
        return f"more than {limit:,} pairs"
    recomputes = memory_plan.REMATERIALIZE[strategy] != encoder_memory.NOTHING
    in_parts = plan.microbatch_size < planner.examples
    if recomputes and in_parts and planner.num_model < planner.num_devices:
        return "rematerialization in microbatches over more than model"
    return ""


def recommend(planner, plans, memory_bytes):
    """`(name of the strategy or None, sentences)`; these name what no phase trains."""
    reasons = {plan.strategy: refusal(planner, plan) for plan in plans}
    refused = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
    note = f" Plans alone, which no phase trains yet: {', '.join(refused)}."
    note = note if refused else ""
    fitting = [plan for plan in plans if plan.total_bytes <= memory_bytes]
    if not fitting:
        least = min(plans, key=lambda plan: plan.total_bytes)
        return None, (
            f"Nothing fits in {memory_bytes / GB:g} GB: the least, {least.strategy} in "
            f"microbatches of {least.microbatch_size}, takes "
            f"{least.total_bytes / GB:.3g} GB; use more devices, or split the weights "
            f"over more of them.{note}"
        )
    best = min(fitting, key=_cost)
    return best.strategy, (
        f"Use {best.strategy}, {best.microbatch_size} pairs of a device at a time: it "
        f"takes {best.total_bytes / GB:.3g} of {memory_bytes / GB:g} GB, and no other "
        f"that fits has a cheaper step.{note}"
    )


def _cost(plan):
    """Fewest FLOPs, then fewest bytes between devices; the earliest of equal plans."""
    return plan.flops, sum(plan.wire_bytes.values())
