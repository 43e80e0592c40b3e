"""Plans of all strategies beside each other, and the one to use."""

from basic_tf.training import memory_plan

GB = 2**30
AXES = "batch", "model"


def parse_mesh(text, num_devices):
    """`{"batch": devices, "model": devices}` of a text such as "batch:512,model:4".

    Args:
        text: an axis that it does not name has one device; None for "batch" alone.
        num_devices: that the axes must come to.

    Raises:
        ValueError: for a text of another form, or axes of another number of devices.
    """
    if text is None:
        return {"batch": num_devices, "model": 1}
    mesh = dict.fromkeys(AXES, 1)
    parts = [part.strip().partition(":") for part in text.split(",")]
    for name, _, size in parts:
        once = [other for other, _, _ in parts].count(name) == 1
        if name not in AXES or not once or not size.isdecimal() or int(size) < 1:
            raise ValueError(f"mesh {text!r} is not of the form batch:512,model:4")
        mesh[name] = int(size)
    product = mesh["batch"] * mesh["model"]
    if product != num_devices:
        raise ValueError(
            f"mesh {text!r} has {product} devices; there are {num_devices}"
        )
    return mesh


def plan_all(planner, memory_bytes, microbatch_size=None):
    """A row a strategy: its plan, and what fits.

    Args:
        planner: `memory_plan.Planner`.
        memory_bytes: of a device.
        microbatch_size: of a device, where it takes microbatches; by default the
            largest that fits.

    Returns:
        List of `(plan, largest microbatch that fits or None)`; without "slots" for an
        odd size, as these take a microbatch in halves.

    Raises:
        ValueError: for a size that does not divide the examples of a device.
    """
    rows = []
    for strategy in memory_plan.STRATEGIES:
        if strategy == memory_plan.SLOTS and (microbatch_size or 0) % 2:
            continue
        largest = planner.largest(strategy, memory_bytes)
        smallest = planner.microbatch_sizes(strategy)[0]
        if microbatch_size and strategy != memory_plan.DATA_PARALLEL:
            plan = planner.plan(strategy, microbatch_size)
        else:
            plan = largest or planner.plan(strategy, smallest)
        rows.append((plan, largest and largest.microbatch_size))
    return rows


def recommend(plans, memory_bytes):
    """`(name of the strategy or None, a sentence)`."""
    fitting = [plan for plan in plans if plan.total_bytes <= memory_bytes]
    if not fitting:
        least = min(plans, key=lambda plan: plan.total_bytes)
        return None, (
            f"Nothing fits in {memory_bytes / GB:g} GB: the least, {least.strategy} in "
            f"microbatches of {least.microbatch_size}, takes "
            f"{least.total_bytes / GB:.3g} GB; use more devices, or split the weights "
            "over more of them."
        )
    best = min(fitting, key=_cost)
    return best.strategy, (
        f"Use {best.strategy}, {best.microbatch_size} pairs of a device at a time: it "
        f"takes {best.total_bytes / GB:.3g} of {memory_bytes / GB:g} GB, and no other "
        "that fits has a cheaper step."
    )


def _cost(plan):
    """Fewest FLOPs, then fewest bytes between devices; the earliest of equal plans."""
    return plan.flops, sum(plan.wire_bytes.values())
