"""What trainers share: Keras models whose `train_step` is the step of a phase."""

import keras
import tensorflow as tf

from basic_tf import replicas
from basic_tf.optimizers import groups


class Trainer(keras.Model):
    """What trainers share: a way through an encoder, and metrics since their reset."""

    metric_names = ("loss",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._means = {name: keras.metrics.Mean(name) for name in self.metric_names}

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Trainers are built. Under a strategy Keras would average a batch over
        # replicas first, which fails for dictionaries on several machines.
        pass

    def _encode(self, encoder, inputs, microbatch_size, form, **options):
        """`microbatching.encode`, or another form of it, at this step."""
        return form(
            encoder,
            inputs,
            microbatch_size,
            self.optimizer.iterations,
            replicas=replicas.current(),
            **options,
        )

    def _report(self, values):
        for name, value in values.items():
            self._means[name].update_state(value)
        results = {name: mean.result() for name, mean in self._means.items()}
        if isinstance(
            tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy
        ):  # where Keras averages over the first axis
            results = {name: value[tf.newaxis] for name, value in results.items()}
        return results


def trained_by(variables, rules):
    """Those of the variables that the rules train."""
    matched = groups.match_rules(variables, rules)
    trained = [v for v, rule in zip(variables, matched, strict=True) if rule.train]
    if not trained:
        raise ValueError(f"rules {rules} leave no variable to train")
    return trained


def assign(variables, values):
    """Assigns to each variable its value."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
