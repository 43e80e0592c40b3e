"""What studies say and draw of made-up tables, the quick ones and the whole ones."""

import numpy as np
import pytest

from experiments.studies import (
    encoder_speed,
    memory_plan,
    micro_batching,
    model_table,
    simclr_probe,
    slot_accumulation,
    slot_memory,
    step_cost,
    streaming_loss,
)


def micro_batching_rows(quick):
    mode, whole = micro_batching.MICROBATCHED, micro_batching.FULL
    rows = [(whole, 128, 128), (mode, 128, 32), (whole, 256, 256), (mode, 256, 32)]
    if not quick:
        rows += [(mode, 1024, 32), (mode, 128, 32, "global")]
    measured = {"seconds": 1.0, "cpu_seconds": 2.0, "step_memory_mb": 100}
    rows = [micro_batching._row(*row) | measured for row in rows]
    for row in rows:
        if row["mode"] == whole:
            row |= {"seconds": 4.0, "step_memory_mb": 3 * row["batch_size"]}
        if row["batch_norm"] == "global":
            row["cpu_seconds"] = 14.0
    return rows


def test_micro_batching_compares_like_with_like():
    summary = micro_batching._summary(micro_batching_rows(quick=False))
    assert (
        "Of 128 pairs, a step in microbatches of 32 takes 0.25 times the time of a "
        "full one (1.00 times the processor time) and 100 in place of 384 MB."
    ) in summary
    assert "over the whole batch, 128 pairs take 7.0 times the processor" in summary
    assert "1024 pairs take 1.00 times the memory of 128, both in micro" in summary


def test_a_first_look_at_micro_batching_compares_microbatches_alone():
    summary = micro_batching._summary(micro_batching_rows(quick=True))
    assert "256 pairs take 1.00 times the memory of 128, both in micro" in summary
    assert "over the whole batch" not in summary


def test_streaming_loss_compares_with_products_of_the_same_size():
    def row(form, batch_size, cpu_seconds, step_memory_mb):
        return {
            "form": form,
            "batch_size": batch_size,
            "cpu_seconds": cpu_seconds,
            "step_memory_mb": step_memory_mb,
        }

    rows = [
        row("dense", 16384, 36.0, 4000),
        row("streaming", 16384, 24.0, 400),
        row("streaming", 65536, 400.0, 900),
        row("matmul", 16384, 20.0, 300),
    ]
    summary = streaming_loss._summary(rows)
    assert "takes 1.20 times the processor time of its four matrix" in summary
    assert "the dense form 1.50 times its time and 4000 MB" in summary
    assert "65536 pairs take 400 processor seconds and 900 MB" in summary
    (axes, _) = streaming_loss._plot(rows).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [
        [36.0], [24.0, 400.0], [20.0],
    ]  # fmt: skip


def test_model_table_names_the_furthest_of_its_paper():
    rows = [
        model_table._row("coatnet_0", 26_000_000, 25, 4_200_000_000, 4.2),
        model_table._row("coatnet_7", 2_440_000_000, 2440, 446_220_000_000, 495.8),
        model_table._row("text_basic_s", 108_000_000, 108, 1, 10.7),
        model_table._row("resnet18_x1", 11_000_000, None, 1_800_000_000, None),
    ]
    summary = model_table._summary(rows)
    assert "in parameters: coatnet_0, 1.040 times; in FLOPs, of" in summary
    assert summary.endswith("of the image encoders: coatnet_7, 0.900 times.")
    assert len(model_table._plot(rows).axes[0].lines[0].get_xdata()) == 3


def test_a_pair_of_the_grid_is_the_sum_of_its_encoders():
    by_name = {
        name: model_table._row(name, parameters, millions, 10, None)
        for name, parameters, millions in (
            ("image_asym_base", 86_100_000, 86),
            ("text_asym_tiny", 37_200_000, 37),
        )
    }
    row = model_table._pair_row("asym_base_tiny", by_name)
    assert row["parameters"] == 123_300_000
    assert row["paper_parameters"] == 123_000_000
    assert (row["flops"], row["paper_flops"]) == (20, None)


@pytest.mark.parametrize("quick", [False, True])
def test_micro_batching_draws_one_batch_norm(quick):
    figure = micro_batching._plot(micro_batching_rows(quick))
    whole, parts = figure.axes[1].lines
    assert list(whole.get_xdata()) == [128, 256]
    assert list(parts.get_xdata()) == ([128, 256] if quick else [128, 256, 1024])


@pytest.mark.parametrize("share, verdict", [(0.3499, "below"), (0.35, "at")])
def test_encoder_speed_sets_the_profiled_step_beside_the_goal(share, verdict):
    row = {
        "forward_per_second": 4.0,
        "forward_share": 0.5,
        "training_per_second": 1.0,
        "training_share": 0.9,
    }
    rows = [
        {"name": name, "batch_size": batch_size, "large_pages": large_pages} | row
        for name, batch_size, large_pages in encoder_speed._cases(quick=True)
    ]
    rows[-2] |= {"training_share": 0.25}
    rows[-1] |= {"training_share": share}
    profile = [{"operation": "MatMul", "count": 3, "seconds": 1.0, "share": 1.0}]
    summary = encoder_speed._summary(rows, [], profile)
    assert f"coatnet_0 in batches of 16 is {verdict} the goal of 35% of" in summary
    assert "rate, 1.40 times that without large pages (25%);" in summary
    assert summary.endswith("its operations' time goes to MatMul 100% (3).")


def test_encoder_speed_always_measures_the_profiled_step_last():
    for quick in (False, True):
        *_, small, large = encoder_speed._cases(quick)
        assert small == ("coatnet_0", 16, False)
        assert large == ("coatnet_0", 16, True)


def test_slot_memory_compares_steps_of_the_same_first_moments():
    def row(momentum_dtype, cpu_seconds, step_memory_mb):
        return {
            "momentum_dtype": momentum_dtype,
            "cpu_seconds": cpu_seconds,
            "step_memory_mb": step_memory_mb,
            "weights_mb": 100.0,
        }

    rows = [row("float32", 2.0, 500), row("float32", 3.0, 350)]
    rows += [row("bfloat16", 2.0, 500), row("bfloat16", 4.0, 510)]
    saved = {"saved_mb_float32": 150, "saved_mb_bfloat16": -10, "weights_mb": 100.0}
    assert slot_memory.saved(rows) == saved
    summary = slot_memory.summary(rows)
    assert "in a buffer takes 500 MB, one that puts them into slots 350 MB" in summary
    assert "1.50 float32 copies of the 100.0 MB of weights are saved, for" in summary
    assert "for 1.50 times the processor time" in summary
    assert "for 2.00 times the processor time" in summary


def test_planned_memory_names_the_furthest_row():
    def row(strategy, predicted_mb, measured_mb):
        made_up = {
            "model": "basic_nano",
            "strategy": strategy,
            "batch_size": 128,
            "predicted_mb": predicted_mb,
            "measured_mb": measured_mb,
        }
        return memory_plan._compared(made_up)

    rows = [row("data_parallel", 90, 100), row("pipelining", 52, 50)]
    assert [each["ratio"] for each in rows] == [0.9, 1.04]
    summary = memory_plan._summary(rows)
    assert (
        "Planned over measured: 0.90 to 1.04; the furthest is basic_nano, " in summary
    )
    assert "data_parallel, 128 pairs: 90 MB planned, 100 MB measured." in summary
    (axes,) = memory_plan._plot(rows).axes
    assert list(axes.lines[0].get_xdata()) == [100, 50]


def test_rows_of_planned_memory_can_be_planned():
    (first, *_) = memory_plan.ROWS
    names = "model", "strategy", "batch_size", "microbatch_size", "image_size"
    row = dict(zip(names, first, strict=True))
    assert 400 < memory_plan._planned_bytes(**row) / 2**20 < 600  # 519 MB measured


def step_cost_rows(largest_outcome):
    """Of two batches of one size of models, whose larger may not have fit whole."""

    def row(strategy, batch_size, seconds, megabytes, outcome="ran"):
        ran = outcome == "ran"
        return {
            "size": "small",
            "strategy": strategy,
            "batch_size": batch_size,
            "outcome": outcome,
            "total_seconds": seconds if ran else None,
            "peak_memory_mb": megabytes if ran else None,
        }

    return [
        row("data_parallel", 64, 1.0, 100.0),
        row("pipelining", 64, 1.25, 40.0),
        row("data_parallel", 128, 2.0, 200.0, largest_outcome),
        row("pipelining", 128, 3.0, 40.0),
        row("spmd", 128, 4.0, 150.0),
    ]


def test_step_cost_compares_the_largest_batch():
    assert list(step_cost._compared(step_cost_rows("ran"))) == [
        "pipelining of 128 pairs (small) takes 1.50 times the time of data_parallel, "
        "and 40.0 in place of 200.0 MB a device.",
        "spmd of 128 pairs (small) takes 2.00 times the time of data_parallel, and "
        "150.0 in place of 200.0 MB a device.",
    ]


def test_step_cost_compares_the_largest_batch_that_fits_whole():
    rows = step_cost_rows("out of memory")
    (sentence,) = step_cost._compared(rows)
    assert sentence.startswith("pipelining of 64 pairs (small) takes 1.25 times the")
    summary = step_cost._summary(rows)
    assert "data_parallel of 128 pairs (small) needs more." in summary
    assert summary.endswith(sentence)
    assert list(step_cost._compared(rows[2:])) == []
    seconds, _ = step_cost._plot(rows).axes
    line = seconds.lines[0].get_ydata()
    np.testing.assert_array_equal(line, [1.0, np.nan])


def test_step_cost_refuses_devices_that_do_not_divide_a_batch():
    cases = step_cost._cases(["small"], [256], 2)
    assert len(cases) == len(step_cost.STRATEGIES)
    with pytest.raises(ValueError, match="num_devices 3 does not divide batch size 64"):
        step_cost._cases(step_cost.SIZES, step_cost.BATCH_SIZES, 3)


def test_two_halves_spread_by_the_square_of_their_difference():
    parts = np.random.default_rng(0).normal(size=(8, 5))  # of 2 microbatches
    (squares,), (spreads,) = slot_accumulation._squares_and_spreads(parts, 1, 2)
    h = parts[0] + parts[1], parts[4] + parts[5]
    other = parts[2] + parts[3], parts[6] + parts[7]
    pairs = list(zip(h, other, strict=True))
    np.testing.assert_allclose(squares, sum((a + b) ** 2 for a, b in pairs))
    np.testing.assert_allclose(spreads, sum((a - b) ** 2 for a, b in pairs))


def test_simclr_probe_reads_separable_features_and_says_by_how_much():
    labels = np.arange(60) % 3
    noise = np.random.default_rng(0).normal(size=(60, 4))
    good = np.eye(4)[labels] + 0.01 * noise
    rows = []
    for kind, values in (("trained", good), ("random", noise), ("pixels", noise)):
        accuracy, strength = simclr_probe.probe((values, labels), (values, labels), 2)
        row = {"features": kind, "top1": accuracy, "strength": strength}
        rows.append(row | {"shots": 20, "test_examples": 60})
    assert rows[0]["top1"] == 1 > rows[1]["top1"]
    gap = f"(+{1 - rows[1]['top1']:.3f}), "
    assert gap in simclr_probe._summary(rows)
