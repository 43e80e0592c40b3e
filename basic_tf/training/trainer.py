"""What trainers share: Keras models whose `train_step` is the step of a phase."""

import keras
import tensorflow as tf

from basic_tf import replicas
from basic_tf.optimizers import groups
from basic_tf.optimizers.ruled import RuledOptimizer, choose
from basic_tf.training import mesh


class Trainer(keras.Model):
    """What trainers share: a way through an encoder, and metrics since their reset.

    A step whose loss or gradient is not finite changes nothing but `non_finite_steps`,
    which counts it. (An optimizer that is no `RuledOptimizer` takes it, and so do slots
    that gradients are accumulated in.)
    """

    metric_names = ("loss",)
    sharded = None  # the `sharding.ShardedStep` that takes the steps, on a mesh

    def __init__(self, **kwargs):
        # Of one name whichever phases came before, as paths name what is checkpointed.
        super().__init__(**{"name": "trainer"} | kwargs)
        self._means = {name: keras.metrics.Mean(name) for name in self.metric_names}
        self.non_finite_steps = self.add_weight(
            name="non_finite_steps",
            shape=(),
            dtype="int32",
            initializer="zeros",
            trainable=False,
            aggregation="only_first_replica",
        )

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Trainers are built. Under a strategy Keras would average a batch over
        # replicas first, which fails for dictionaries on several machines.
        pass

    def make_train_function(self, force=False):
        if self.sharded is None:
            return super().make_train_function(force)
        self.train_function = lambda batches: self.sharded(next(batches))
        return self.train_function

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

    def _take_step(self, loss, gradients, variables, encoders, statistics):
        """The optimizer's step, and the encoders' statistics after it.

        Args:
            loss: scalar.
            gradients: of the variables, this replica's share of them.
            variables: those to move.
            encoders: `StatelessEncoder`s, whose statistics move.
            statistics: of each encoder, its statistics after the step.

        Returns:
            Whether loss and gradients were finite, on every replica.
        """
        finite = all_finite([loss, *gradients], [None, *variables])
        if isinstance(self.optimizer, RuledOptimizer):
            self.optimizer.step(finite, gradients, variables)
        else:
            self.optimizer.apply(gradients, variables)
        for encoder, after in zip(encoders, statistics, strict=True):
            assign_if(finite, encoder.statistics, after)
        return finite

    def _report(self, values, finite):
        """What `fit` gets to know of a step.

        Args:
            values: of each of `metric_names`.
            finite: whether its loss and gradients were.
        """
        for name, value in values.items():
            value = tf.where(finite, value, 0.0)
            self._means[name].update_state(value, tf.cast(finite, tf.float32))
        self.non_finite_steps.assign_add(tf.cast(~finite, tf.int32))
        results = {name: mean.result() for name, mean in self._means.items()}
        count = tf.cast(self.non_finite_steps.value, tf.float32)  # as Keras averages
        results["non_finite_steps"] = count
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


def all_finite(tensors, variables=None):
    """Whether every value on every replica has a finite square, bool scalar.

    Optimizers square gradients.

    Args:
        tensors: list.
        variables: of those of them that are gradients, their variables; else None.
    """
    finite = [tf.reduce_all(tf.math.is_finite(tf.square(t))) for t in tensors]
    if variables is not None:
        finite = [
            mesh.among_examples(variable, each)
            for variable, each in zip(variables, finite, strict=True)
        ]
    bad = tf.cast(~tf.reduce_all(finite), tf.float32)
    return tf.equal(replicas.current().total(bad), 0.0)


def assign_if(condition, variables, values):
    """Assigns to each variable its value where the condition holds."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(choose(condition, value, variable.value))
