import pytest
from ml_collections import ConfigDict

from basic_tf.training import mesh, phase_sizes
from tests.tiny_run import tiny_config

ON_TWO = mesh.Mesh(*[type("Devices", (), {"size": 2})()] * 2)


def phase(**changes):
    config = ConfigDict(tiny_config("unused").phases.joint.to_dict())
    config.update(changes)
    return config


@pytest.mark.parametrize("size", [0, 4, 16])
def test_microbatches_that_divide_the_batch_and_the_devices_are_taken(size):
    phase_sizes.check(phase(microbatch_image=size), ON_TWO)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"microbatch_text": 5}, "microbatch_text 5 does not divide batch size 16"),
        ({"accumulate": "slots", "microbatch_image": 1}, "size 1 has no halves"),
    ],
)
def test_what_no_device_can_train_with_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        phase_sizes.check(phase(**changes))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"microbatch_image": 1}, "microbatch_image 1 is not a multiple of the 2 dev"),
        (
            {"batch_size": 8192},
            "batch_size 8192 needs the streaming loss, .* most 4096",
        ),
        ({"accumulate": "slots"}, "slots does not run on a mesh; use buffer"),
        ({"batch_norm": "global"}, "global does not run on a mesh; use microbatch"),
    ],
)
def test_what_a_mesh_cannot_train_with_is_refused_there_alone(changes, message):
    phase_sizes.check(phase(**changes))
    with pytest.raises(ValueError, match=message):
        phase_sizes.check(phase(**changes), ON_TWO)


def test_rematerialization_in_microbatches_is_refused_on_a_mesh_of_both_axes():
    devices = mesh.Mesh(*(type("Devices", (), {"size": 2})() for _ in range(2)))
    whole = {"microbatch_image": 0, "microbatch_text": 0}
    phase_sizes.check(phase(rematerialization="block", **whole), devices)
    config = phase(rematerialization="block", **whole | {"microbatch_text": 4})
    phase_sizes.check(config, ON_TWO)
    with pytest.raises(ValueError, match="block does not run on a mesh of both batch"):
        phase_sizes.check(config, devices)
