import pytest

from basic_tf.training import mesh


@pytest.mark.parametrize(
    "text, sizes",
    [("model:4", (1, 4)), ("batch:2, model:3", (2, 3)), ("batch:8", (8, 1))],
)
def test_a_mesh_is_read(text, sizes):
    assert mesh.parse(text) == sizes


@pytest.mark.parametrize(
    "text", ["", "4", "model", "model:x", "rows:2", "model:2,model:2"]
)
def test_what_is_no_mesh_is_refused(text):
    with pytest.raises(ValueError, match="is not of the form batch:2,model:4"):
        mesh.parse(text)


def test_an_axis_without_devices_is_refused():
    with pytest.raises(
        ValueError, match="'batch:0,model:2' has an axis without devices"
    ):
        mesh.parse("batch:0,model:2")


def test_a_mesh_of_more_devices_than_there_are_is_refused():
    with pytest.raises(ValueError, match="needs 64 devices; there are"):
        mesh.make_mesh("batch:8,model:8", "CPU")


def test_without_a_mesh_a_layer_reads_the_value_itself():
    assert mesh.current() is None
    assert mesh.whole("variable", 3.0) == mesh.here("variable", 3.0) == 3.0
