"""PIL decodes the same files."""

import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from basic_tf.data import decoding
from tests.data.image_files import (
    BOMBS,
    LEVEL,
    LOSSLESS,
    MIXED,
    bmp_with_masks,
    encode,
    exif,
    noise,
    pil_decode,
    png,
    smooth,
)

decode = tf.function(
    decoding.decode_image, input_signature=[tf.TensorSpec([], tf.string)]
)


def decode_in_dataset(file):
    dataset = tf.data.Dataset.from_tensors(file).map(decoding.decode_image)
    return next(iter(dataset))


DECODERS = {
    "eager": decoding.decode_image,
    "tf.function": decode,
    "tf.data": decode_in_dataset,
}


@pytest.mark.parametrize("name", LOSSLESS)
def test_a_lossless_file_decodes_to_the_pixels_of_pil(name):
    expected = pil_decode(LOSSLESS[name])
    # Compositing in float32 against float64.
    np.testing.assert_allclose(decode(LOSSLESS[name]), expected, rtol=0, atol=5e-7)


def test_transparent_pixels_of_a_gif_are_black():
    image = Image.fromarray(noise(9, 13, 3)).quantize(16)
    file = encode(image, "GIF", transparency=3)
    expected = np.asarray(image.convert("RGB")) / 255
    expected[np.asarray(image) == 3] = 0
    np.testing.assert_allclose(decode(file), expected, rtol=0, atol=5e-7)


@pytest.mark.parametrize("color_type,channels", [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_a_16_bit_png_keeps_its_16_bits(color_type, channels):
    values = np.random.default_rng(1).integers(0, 65536, (5, 7, channels), np.uint16)
    exact = values / 65535
    color = exact[..., : channels - 1] if channels in (2, 4) else exact
    alpha = exact[..., -1:] if channels in (2, 4) else 1.0
    expected = np.broadcast_to(color * alpha + (1 - alpha), (5, 7, 3))
    actual = decode(png(values, color_type))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=5e-7)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
def test_a_jpeg_decodes_as_in_pil(mode, subsampling):
    image = smooth(37, 50).convert(mode)
    file = encode(image, "JPEG", quality=95, subsampling=subsampling)
    assert np.abs(decode(file) - pil_decode(file)).mean() < LEVEL / 2
    assert (
        np.abs(decode(file) - np.asarray(image.convert("RGB")) / 255).mean() < 2 * LEVEL
    )


def test_a_lossy_webp_decodes_as_in_pil():
    file = encode(smooth(37, 50), "WEBP", quality=90)
    assert np.abs(decode(file) - pil_decode(file)).mean() < LEVEL / 2


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(10))
def test_a_jpeg_is_turned_by_its_exif_orientation(byte_order, orientation):
    file = encode(smooth(24, 40), "JPEG", exif=exif(byte_order, orientation))
    actual, expected = decode(file), pil_decode(file)
    assert actual.shape == ((40, 24, 3) if 5 <= orientation <= 8 else (24, 40, 3))
    assert np.abs(actual - expected).mean() < LEVEL / 2


def test_exif_is_found_behind_other_segments_and_nowhere_else():
    plain = encode(smooth(24, 40), "JPEG")
    block = exif(">", 6)
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(block)) + block
    comment = b"\xff\xfe" + struct.pack(">H", 2 + len(segment)) + segment
    extended = b"\xff\xe1\x00\x09http:/\0"
    behind = plain[:2] + extended + comment + b"\xff\xff" + segment + plain[2:]
    assert decode(behind).shape == pil_decode(behind).shape == (40, 24, 3)
    for other in (plain, plain[:2] + comment + plain[2:], plain + segment):
        assert decode(other).shape == pil_decode(other).shape == (24, 40, 3)


@pytest.mark.parametrize("directory", [9, 60, 2**32 - 1])
def test_a_broken_exif_block_leaves_the_image_as_it_is(directory):
    file = encode(smooth(24, 40), "JPEG", exif=exif("<", 6, directory))
    assert decode(file).shape == (24, 40, 3)


@pytest.mark.parametrize("file", MIXED, ids=["png", "gif", "bmp", "webp", "jpeg"])
def test_eager_function_and_dataset_give_the_same_bits(file):
    eager, compiled, mapped = (decoder(file).numpy() for decoder in DECODERS.values())
    np.testing.assert_array_equal(eager, compiled)
    np.testing.assert_array_equal(eager, mapped)


def broken_files():
    files = {"empty": b"", "text": b"hello, world", "two bytes": b"\xff\xd8"}
    whole = {
        "jpeg": encode(smooth(24, 40), "JPEG"),
        "cmyk": encode(smooth(24, 40).convert("CMYK"), "JPEG"),
        **{
            name: LOSSLESS[name]
            for name in ("png rgb", "png palette", "gif", "bmp rgb")
        },
        **{
            name: LOSSLESS[name]
            for name in ("bmp palette", "webp rgb", "webp animation")
        },
    }
    for name, file in whole.items():
        for kept in (12, 30, len(file) // 2, len(file) - 20):
            files[f"{kept} bytes of {name}"] = file[:kept]
    png_file = bytearray(LOSSLESS["png rgb"])
    png_file[60] ^= 255
    files["png with a flipped byte"] = bytes(png_file)
    image = Image.fromarray(noise(9, 13, 3)).quantize(16)
    files["tiff"] = encode(image, "TIFF")
    return files


BROKEN = broken_files()


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_whole_image_is_refused(name):
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(BROKEN[name])


@pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)
@pytest.mark.parametrize("name", ["empty", "text", "30 bytes of png rgb"])
def test_refusals_are_the_same_everywhere(name, decoder):
    message = "PNG" if "png" in name else "not a JPEG, PNG, GIF, BMP or WebP image"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        decoder(BROKEN[name])


def run_length_bmp():
    file = bytearray(LOSSLESS["bmp gray"])
    file[30] = 1
    return bytes(file)


@pytest.mark.parametrize(
    "file",
    [
        encode(Image.fromarray(noise(9, 13, 1)).convert("1"), "BMP"),
        run_length_bmp(),
        bmp_with_masks(noise(9, 13, 4), (0xFF, 0xFF00, 0xFF0000, 0)),
    ],
    ids=["1 bit", "run length", "masks"],
)
def test_a_bmp_that_would_be_misread_is_refused(file):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="a BMP must have 8, 24 or"
    ):
        decode(file)


@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_refused_by_its_header(name):
    for decoder in (decoding.decode_image, decode):
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than 178956970"):
            decoder(BOMBS[name])


def test_a_batch_of_files_is_refused():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="shape"):
        decoding.decode_image([b"one", b"two"])
