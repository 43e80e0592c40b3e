"""The named networks have the sizes that timm's have."""

import pytest

from basic_tf.models import zoo

# Of timm 1.0.31's own, with a classifier of 1000 classes: millions of parameters, and
# billions of multiply-adds of one image of 224 x 224, those of attention included.
SIZES = {
    "timm_coatnet_0_224": (25.04, 4.5),
    "timm_coatnet_1_224": (42.23, 8.6),
    "timm_coatnet_2_224": (74.68, 16.4),
    "timm_coatnet_3_224": (166.97, 36.5),
    "timm_coatnet_4_224": (275.43, 62.3),
    "timm_coatnet_5_224": (687.47, 145.3),
}


@pytest.mark.parametrize("name", SIZES)
def test_parameters_and_multiply_adds_are_those_of_timm(name):
    parameters, multiply_adds = SIZES[name]
    counted = zoo.describe(name)
    assert round(counted.parameters / 1e6, 2) == parameters
    assert counted.multiply_adds == pytest.approx(multiply_adds * 1e9, rel=0.02)


def test_each_of_timms_networks_is_an_encoder_by_name():
    named = {name for name in zoo.ENCODERS if name.startswith("timm_")}
    assert named == set(SIZES)
