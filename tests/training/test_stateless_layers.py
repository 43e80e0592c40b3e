import keras
import numpy as np

from basic_tf.training.stateless_layers import ValuesScope, calling


def test_in_a_scope_variables_have_the_values_that_they_are_given():
    one, other = keras.Variable(1.0), keras.Variable(2.0)
    with ValuesScope([(one, 5.0), (other, 6.0)]) as scope:
        assert ValuesScope.current() is scope
        one.assign(one + other)
    assert [float(value) for value in scope.values([one, other])] == [11.0, 6.0]
    assert (float(one), float(other)) == (1.0, 2.0)


def test_what_comes_later_stands_around_what_comes_before():
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    inputs = np.ones((1, 3), np.float32)

    def plus(number):
        return lambda layer, own_call, inputs, **options: (
            own_call(inputs, **options) + number
        )

    def times(number):
        return lambda layer, own_call, inputs, **options: (
            own_call(inputs, **options) * number
        )

    with calling([([layer], plus(1.0))]):
        with calling([([layer], times(10.0))]):
            assert float(layer(inputs)[0, 0]) == 40.0
        assert float(layer(inputs)[0, 0]) == 4.0
    assert float(layer(inputs)[0, 0]) == 3.0
