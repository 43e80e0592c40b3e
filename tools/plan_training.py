"""Plans the memory and the cost of a training step of a named model.

For each strategy: what a device holds when it holds most, whether that fits, and the
step's FLOPs and bytes between devices. `data_parallel` keeps all activations of a
device's pairs; `pipelining` sends them through in microbatches (Algorithm 1) and adds
gradients up in a buffer, `slots` in the optimizer's moments; `spmd` splits weights over
`model` and pairs over all devices, `spmd_remat` also computes norms, activations and
attention again, `spmd_block` all of a block. GB are of 2^30 bytes.

Plans of `spmd` are of the paper's step, where a device holds its part of the loss; on
a mesh here every device computes the loss of all pairs. No phase trains yet with more
than 4,096 pairs on a mesh, with rematerialization in microbatches on a mesh of more
than `model`, or with `slots` on a TPU: the last line names these plans.

BASIC-L took 30.1 GB of a TPUv4's 32, for 65,536 pairs in microbatches of 8,192. `slots`
comes to 28.3 GB on 2,048 devices (which the paper does not say; as many as its Table 2
has), with activations in bfloat16 and each value held once.

Examples:
  python -m tools.plan_training --model basic_l --batch_size 65536 --devices 2048 \\
      --mesh batch:512,model:4 --memory_gb 32 --precision mixed_bfloat16
  python -m tools.plan_training --model basic_nano --batch_size 256 --memory_gb 0.5 \\
      --device_kind cpu --microbatch_size 64 --json
"""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

from basic_tf.models import zoo
from basic_tf.training import encoder_memory, memory_plan, plan_choice
from basic_tf.training.plan_choice import GB
from experiments import command_line

_MODEL = flags.DEFINE_string("model", None, "A name of zoo.CONFIGURATIONS.")
_BATCH_SIZE = flags.DEFINE_integer(
    "batch_size", None, "Pairs of a step, of all devices together.", lower_bound=1
)
_MEMORY_GB = flags.DEFINE_float(
    "memory_gb", 32.0, "Memory of a device.", lower_bound=0.0
)
_DEVICES = flags.DEFINE_integer("devices", 1, "Number of devices.", lower_bound=1)
_MESH = flags.DEFINE_string(
    "mesh",
    None,
    'Axes of the devices, such as "batch:512,model:4": weights are split over model. '
    "By default all devices are in batch.",
)
_MICROBATCH_SIZE = flags.DEFINE_integer(
    "microbatch_size",
    None,
    "Pairs of a device that go through the encoders at a time; by default as many as "
    "fit.",
    lower_bound=1,
)
_PRECISION = flags.DEFINE_enum(
    "precision", "float32", ["float32", "mixed_bfloat16"], "Of the activations."
)
_DEVICE_KIND = flags.DEFINE_enum(
    "device_kind",
    "tpu",
    list(encoder_memory.DEVICE_KINDS),
    "tpu: XLA fuses operations into layers, which hold each value once. cpu, gpu: "
    "operations run one by one, and keep what those of the gradient read.",
)
_JSON = flags.DEFINE_boolean("json", False, "Print one JSON object.")


def main(arguments):
    command_line.refuse(arguments)
    configuration = zoo.configuration(_MODEL.value)
    configuration["precision"] = _PRECISION.value
    mesh = plan_choice.parse_mesh(_MESH.value, _DEVICES.value)
    planner = memory_plan.Planner(
        configuration,
        _BATCH_SIZE.value,
        _DEVICES.value,
        mesh["model"],
        _DEVICE_KIND.value,
    )
    memory_bytes = _MEMORY_GB.value * GB
    rows = plan_choice.plan_all(planner, memory_bytes, _MICROBATCH_SIZE.value)
    plans = [plan for plan, _ in rows]
    recommended, sentence = plan_choice.recommend(planner, plans, memory_bytes)
    records = [_record(planner, *row, memory_bytes) for row in rows]
    if _JSON.value:
        values = {
            "model": _MODEL.value,
            "batch_size": _BATCH_SIZE.value,
            "devices": _DEVICES.value,
            "mesh": mesh,
            "memory_gb": _MEMORY_GB.value,
            "precision": _PRECISION.value,
            "device_kind": _DEVICE_KIND.value,
            "strategies": records,
            "recommended": recommended,
            "recommendation": sentence,
        }
        print(json.dumps(values))
        return
    print(
        f"{_MODEL.value}, {_PRECISION.value}: {_BATCH_SIZE.value:,} pairs on "
        f"{_DEVICES.value:,} devices ({_DEVICE_KIND.value}) of {_MEMORY_GB.value:g} "
        f"GB, {planner.examples:,} on each\n"
    )
    print("\n".join(_table(records)))
    print(f"\n{sentence}")


def _record(planner, plan, largest, memory_bytes):
    return {
        "strategy": plan.strategy,
        "microbatch_size": plan.microbatch_size,
        "largest_microbatch_size": largest,
        "fits": plan.total_bytes <= memory_bytes,
        "total_bytes": plan.total_bytes,
        "moment": plan.moment,
        "bytes": plan.parts,
        "flops": plan.flops,
        "wire_bytes": plan.wire_bytes,
        "refusal": plan_choice.refusal(planner, plan),
    }


def _table(records):
    """Lines: a column a strategy."""

    def line(title, values):
        return f"{title:24}" + "".join(f"{value:>14}" for value in values)

    def gigabytes(title, values):
        return line(title, [f"{value / GB:,.3f}" for value in values])

    yield line("", [r["strategy"] for r in records])
    yield line("microbatch", [f"{r['microbatch_size']:,}" for r in records])
    yield line("most is held at", [r["moment"] for r in records])
    for part in records[0]["bytes"]:
        yield gigabytes(f"  {part}, GB", [r["bytes"][part] for r in records])
    yield gigabytes("total, GB", [r["total_bytes"] for r in records])
    yield line("fits", ["yes" if r["fits"] else "no" for r in records])
    largest = [r["largest_microbatch_size"] or "none" for r in records]
    yield line("largest that fits", largest)
    yield line("TFLOPs of a step", [f"{r['flops'] / 1e12:,.1f}" for r in records])
    for part in records[0]["wire_bytes"]:
        title = f"  {part} sent, GB"
        yield gigabytes(title, [r["wire_bytes"][part] for r in records])


if __name__ == "__main__":
    flags.mark_flags_as_required(["model", "batch_size"])
    command_line.run(main)
