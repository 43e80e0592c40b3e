"""PIL and recorded peers resize the same images."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from basic_tf.data import preprocessing
from tests.data.image_files import LEVEL, LOSSLESS, MIXED, encode, noise, pil_decode

ORACLES = pathlib.Path(__file__).parent.parent / "oracles" / "preprocessing.npz"
# Of the peers' normalisation in the recorded outputs (CLIP, RGB).
MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
STANDARD_DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711])


def pil_resize_and_crop(image, size):
    """torchvision's `Resize` and `CenterCrop` of a PIL image."""
    width, height = image.size
    short = min(width, height)
    width, height = size * width // short, size * height // short
    image = image.resize((width, height), Image.Resampling.BICUBIC)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return np.asarray(image.crop((left, top, left + size, top + size)))


SIZES = [(640, 480), (480, 640), (100, 37), (37, 100), (300, 1), (1, 300), (2, 2)]


@pytest.mark.parametrize("width,height", [*SIZES, (1, 1), (33, 32), (31, 31), (97, 64)])
def test_resize_and_crop_agrees_with_pil(width, height):
    array = noise(height, width, 3)
    actual = preprocessing.resize_and_crop(np.float32(array) / 255, 32)
    assert actual.shape == (32, 32, 3)
    # In bytes, PIL rounds and clips after each of its two passes.
    rounded = pil_resize_and_crop(Image.fromarray(array), 32) / 255
    assert np.abs(actual - rounded).mean() < LEVEL / 2
    channels = [Image.fromarray(np.float32(array[..., c]) / 255) for c in range(3)]
    exact = np.stack([pil_resize_and_crop(c, 32) for c in channels], axis=-1)
    # The weights are sums and quotients in float32.
    np.testing.assert_allclose(actual, np.clip(exact, 0, 1), rtol=0, atol=2e-5)


def recorded_pixels(recorded, case):
    """What peers made of an image, their normalisation taken back."""
    return recorded[f"{case}/out"].transpose(1, 2, 0) * STANDARD_DEVIATION + MEAN


@pytest.mark.parametrize("case", range(6))
def test_resize_and_crop_agrees_with_recorded_peers(case):
    recorded = np.load(ORACLES)
    image = np.float32(recorded[f"{case}/uint8"]) / 255
    actual = preprocessing.resize_and_crop(image, 64)
    difference = np.abs(actual - recorded_pixels(recorded, case))
    assert difference.mean() < LEVEL / 2  # they round to bytes


@pytest.mark.parametrize("mode", ["L", "RGBA"])
def test_files_of_other_modes_agree_with_recorded_peers(mode):
    recorded = np.load(ORACLES)
    file = encode(Image.fromarray(recorded[f"mode_{mode}/array"]), "PNG")
    expected = recorded_pixels(recorded, f"mode_{mode}")
    assert np.abs(preprocessing.load_image(file, 64) - expected).mean() < LEVEL / 2


def test_a_palette_is_resized_as_colors_where_recorded_peers_take_the_nearest_pixel():
    recorded = np.load(ORACLES)
    image = Image.fromarray(recorded["1/uint8"]).convert("P")
    np.testing.assert_array_equal(image, recorded["mode_P/array"])
    nearest = image.resize((64, 80)).crop((0, 8, 64, 72)).convert("RGB")  # PIL, of "P"
    expected = recorded_pixels(recorded, "mode_P")
    np.testing.assert_allclose(np.asarray(nearest) / 255, expected, atol=1e-6)
    actual = preprocessing.load_image(encode(image, "PNG"), 64)
    bicubic = pil_resize_and_crop(image.convert("RGB"), 64) / 255
    assert np.abs(actual - bicubic).mean() < LEVEL / 2


def test_resize_keeps_the_range():
    image = np.float32(noise(20, 20, 3) > 127)  # bicubic overshoots at such edges
    resized = preprocessing.resize_and_crop(image, 50)
    assert tf.reduce_min(resized) == 0 and tf.reduce_max(resized) == 1


def test_an_image_of_the_right_size_is_untouched():
    image = np.random.default_rng(0).normal(size=(32, 32, 3)).astype("float32")
    np.testing.assert_array_equal(preprocessing.resize_and_crop(image, 32), image)


def test_load_image_has_a_static_shape_in_a_dataset():
    files = [LOSSLESS["png rgba"], LOSSLESS["gif"], MIXED[-1]]
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.map(lambda file: preprocessing.load_image(file, 32)).batch(3)
    assert dataset.element_spec.shape == (None, 32, 32, 3)
    for file, image in zip(files, next(iter(dataset)), strict=True):
        upright = Image.fromarray(np.uint8(np.rint(pil_decode(file) * 255)))
        expected = pil_resize_and_crop(upright, 32) / 255
        assert np.abs(image - expected).mean() < LEVEL


def test_a_saved_model_loads_images_without_python(tmp_path):
    module = tf.Module()
    signature = [tf.TensorSpec([None], tf.string)]
    spec = tf.TensorSpec([16, 16, 3], tf.float32)

    @tf.function(input_signature=signature)
    def load(files):
        def load_one(file):
            return preprocessing.load_image(file, 16)

        return tf.map_fn(load_one, files, fn_output_signature=spec)

    module.load = load
    tf.saved_model.save(module, tmp_path)
    graph = load.get_concrete_function().graph.as_graph_def()
    operations = {node.op for node in graph.node}
    operations |= {node.op for f in graph.library.function for node in f.node_def}
    assert not [name for name in operations if "PyFunc" in name]
    images = tf.saved_model.load(tmp_path).load(MIXED)
    for file, image in zip(MIXED, images, strict=True):
        np.testing.assert_array_equal(image, preprocessing.load_image(file, 16))
