"""Whole steps in slots against the published update, in float64."""

import numpy as np
import pytest
import tensorflow as tf

from basic_tf import losses
from basic_tf.optimizers import adafactorw, adamw
from basic_tf.training import contrastive_trainer, microbatching
from tests.optimizers.published_adafactorw import PublishedAdaFactorW
from tests.training import small_encoders
from tests.training.test_microbatching import make_batch, stateless, variables
from tests.training.test_slot_accumulation import gradients_of

RATE = 1e-2


def gradients_of_halves(ours, batch, sizes):
    """Of each variable, `[2 K, ...]`: half microbatches one by one; of the scale."""
    model = ours.dual_encoder
    inputs = batch["image"], batch["token_ids"]
    encoders = list(stateless(model, batch_norm="frozen"))
    passes = [
        microbatching.encode(encoder, values, 0, 0)
        for encoder, values in zip(encoders, inputs, strict=True)
    ]
    embeddings = [*(run.embeddings for run in passes), model.log_scale.value]
    with microbatching.watching(embeddings) as tape:
        loss, _ = losses.contrastive_loss(*embeddings)
    *by_embeddings, by_scale = tape.gradient(loss, embeddings)
    found = []
    for encoder, values, gradients, size in zip(
        encoders, inputs, by_embeddings, sizes, strict=True
    ):
        halves = [
            gradients_of(
                encoder, values[k : k + size // 2], gradients[k : k + size // 2]
            )
            for k in range(0, len(values), size // 2)
        ]
        found += [np.float64(of_weight) for of_weight in zip(*halves, strict=True)]
    return found, by_scale.numpy()


KINDS = {
    "adafactorw": (adafactorw.AdaFactorW, {}, {}),
    "adamw": (
        adamw.AdamW,
        # Beside it the rounding of gradients that are next to nothing is small.
        {"epsilon": 1e-2},
        {"epsilon": 1e-2, "factored": False, "clip_threshold": None},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_steps_of_microbatches_follow_the_formulas_in_float64(dtype, kind):
    """Weights and second moments after each of two steps: K = 2 images, 4 texts."""
    model, sizes = small_encoders.build(), (4, 2)
    images, tokens = make_batch(8)
    batch = {"image": images, "token_ids": tokens}
    ours = contrastive_trainer.ContrastiveTrainer(
        model,
        microbatch_image=sizes[0],
        microbatch_text=sizes[1],
        batch_norm="frozen",
        accumulate="slots",
    )
    options = {"beta_2": 0.9, "decay": 0.1, "momentum_dtype": dtype}
    make, own_options, of_reference = KINDS[kind]
    optimizer = make(RATE, **options, **own_options)
    optimizer.build(ours.trained_variables)
    ours.compile(optimizer, jit_compile=False)
    *weights, scale = variables(model)
    references = [
        PublishedAdaFactorW(
            variable.numpy(),
            RATE,
            **options | {"decay": 0.1 if len(variable.shape) > 1 else 0.0},
            **of_reference,
        )
        for variable in (*weights, scale)
    ]
    for _ in range(2):
        halves, by_scale = gradients_of_halves(ours, batch, sizes)
        for of_weight, reference in zip(halves, references, strict=False):
            sums, spreads = (
                of_weight[::2] + sign * of_weight[1::2] for sign in (1, -1)
            )
            count = len(sums)
            least = (sums**2).sum(0)
            # g^2 = K sum(c^2) - K^2 Var[c], of whose estimate 1 - 1/K is unbiased.
            variance = (1 - 1 / count) * np.mean(spreads**2, 0)
            estimate = count * least - count**2 * variance
            reference.apply_estimate(np.float32(sums.sum(0)), estimate, least)
        references[-1].apply(by_scale)
        ours.fit(tf.data.Dataset.from_tensors(batch), shuffle=False, verbose=0)
        for variable, reference in zip((*weights, scale), references, strict=True):
            assert_follows(optimizer, variable, reference)


def assert_follows(optimizer, variable, reference):
    _, moments = optimizer.slots(variable)
    names = ("rows", "columns") if reference.is_factored else ("full",)
    for name, moment in zip(names, moments, strict=True):
        expected = getattr(reference, name)
        np.testing.assert_allclose(
            moment,
            expected,
            rtol=1e-4,
            atol=1e-6 * expected.max(),  # squares of single float32 gradients
            err_msg=variable.path,
        )
    # Of a step: float32 gradients, and weights near 1 (6e-6 of a step each). A bfloat16
    # moment at a border of rounding may be one unit of 2^-7 off in the next step, of
    # whose moment it is less than half.
    share = 2e-4 if optimizer.momentum_dtype == "float32" else 2**-8
    np.testing.assert_allclose(
        variable, reference.weight, rtol=0, atol=share * RATE, err_msg=variable.path
    )
