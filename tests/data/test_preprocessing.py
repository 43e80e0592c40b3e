"""PIL decodes the same files; PIL and recorded peers resize the same images."""

import io
import pathlib
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageOps

from basic_tf.data import preprocessing

ORACLES = pathlib.Path(__file__).parent.parent / "oracles" / "preprocessing.npz"
LEVEL = 1 / 255  # one step of an 8-bit image
# Of the peers' normalisation in the recorded outputs (CLIP, RGB).
MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
STANDARD_DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711])

decode = tf.function(
    preprocessing.decode_image, input_signature=[tf.TensorSpec([], tf.string)]
)


def decode_in_dataset(file):
    dataset = tf.data.Dataset.from_tensors(file).map(preprocessing.decode_image)
    return next(iter(dataset))


DECODERS = {
    "eager": preprocessing.decode_image,
    "tf.function": decode,
    "tf.data": decode_in_dataset,
}


def noise(height, width, channels):
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def smooth(height, width):
    """What JPEG can hold: an asymmetric picture without hard edges."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    channels = [np.sin(5 * x + 2 * y), np.cos(3 * x * y + 4 * y), np.sin(7 * x * x - y)]
    return Image.fromarray(np.uint8(127.5 + 127.5 * np.stack(channels, axis=-1)))


def encode(image, file_format, **options):
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def pil_decode(file):
    """PIL's decode of the first frame, upright and over white, float64 in [0, 1]."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
    if image.mode == "CMYK":
        image = image.convert("RGB")
    rgba = np.asarray(image.convert("RGBA")) / 255
    return rgba[..., :3] * rgba[..., 3:] + (1 - rgba[..., 3:])


def png(array, color_type):
    """A PNG file of a uint8 or uint16 array, for the depths that PIL cannot write."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    height, width = array.shape[:2]
    depth = 8 * array.itemsize
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0)
    rows = array.astype(array.dtype.newbyteorder(">")).reshape(height, -1)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*c) for c in chunks)


def bmp_with_masks(array, masks):
    """A 32-bit BMP file with bit masks (BITFIELDS) of a `[H, W, 4]` BGRA array."""
    height, width = array.shape[:2]
    header = struct.pack("<IiiHHI", 108, width, -height, 1, 32, 3) + bytes(20)
    header += struct.pack("<4I", *masks) + bytes(52)
    start = struct.pack("<2sIII", b"BM", 122 + array.nbytes, 0, 122)
    return start + header + array.tobytes()


def lossless_files():
    rgb, rgba = Image.fromarray(noise(9, 13, 3)), Image.fromarray(noise(9, 13, 4))
    gray, gray_alpha = rgba.getchannel(0), Image.merge("LA", rgba.split()[:2])
    palette = rgb.quantize(16)
    frames = {"save_all": True, "append_images": [Image.new("RGB", (13, 9), "red")]}
    exact = {"lossless": True, "exact": True}
    return {
        "png gray": encode(gray, "PNG"),
        "png 1 bit": encode(gray.convert("1"), "PNG"),
        "png gray, transparent level": encode(
            gray, "PNG", transparency=gray.getpixel((3, 4))
        ),
        "png 1 bit, transparent level": encode(
            gray.convert("1"), "PNG", transparency=0
        ),
        "png gray alpha": encode(gray_alpha, "PNG"),
        "png rgb": encode(rgb, "PNG"),
        "png rgb, transparent color": encode(
            rgb, "PNG", transparency=rgb.getpixel((3, 4))
        ),
        "png rgba": encode(rgba, "PNG"),
        "png palette": encode(palette, "PNG"),
        "png palette, one transparent": encode(palette, "PNG", transparency=3),
        "png palette alpha": encode(
            palette, "PNG", transparency=bytes(range(0, 256, 16))
        ),
        "png one pixel": encode(rgb.crop((0, 0, 1, 1)), "PNG"),
        "gif": encode(palette, "GIF"),
        "gif gray": encode(gray, "GIF"),
        "gif animation": encode(palette, "GIF", **frames),
        "bmp gray": encode(gray, "BMP"),
        "bmp palette": encode(palette, "BMP"),
        "bmp rgb": encode(rgb, "BMP"),
        "bmp 32 bits": encode(rgba, "BMP"),
        "webp rgb": encode(rgb, "WEBP", lossless=True),
        "webp rgba": encode(rgba, "WEBP", **exact),
        "webp animation": encode(rgb, "WEBP", lossless=True, **frames),
        "webp animation with profile": encode(
            rgb,
            "WEBP",
            lossless=True,
            icc_profile=bytes(200),
            exif=exif("<", 1),
            **frames,
        ),
        "webp animation alpha": encode(rgba, "WEBP", **exact, **frames),
    }


def exif(byte_order, orientation, directory=8):
    """An Exif block: a short text, an orientation, and a thumbnail's orientation."""
    start = {"<": b"II", ">": b"MM"}[byte_order]
    text = struct.pack(byte_order + "HHI4s", 0x010F, 2, 4, b"abc\0")
    first = struct.pack(byte_order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    second = struct.pack(byte_order + "HHIHH", 0x0112, 3, 1, 3, 0)
    start += struct.pack(byte_order + "HI", 42, directory)
    start += struct.pack(byte_order + "H", 2) + text + first
    start += struct.pack(byte_order + "I", 38)
    start += struct.pack(byte_order + "H", 1) + second + bytes(4)
    return b"Exif\0\0" + start


LOSSLESS = lossless_files()


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


MIXED = [
    LOSSLESS[name] for name in ("png rgba", "gif", "bmp palette", "webp animation")
]
MIXED.append(encode(smooth(24, 40), "JPEG", exif=exif(">", 7)))


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


def forged(name):
    """Files of a few bytes that declare 30000 x 30000 pixels."""
    side = 30_000
    if name == "png":
        file = bytearray(LOSSLESS["png rgb"])
        file[16:24] = struct.pack(">II", side, side)
        file[29:33] = struct.pack(">I", zlib.crc32(file[12:29]))
    elif name == "gif":
        file = bytearray(LOSSLESS["gif"])
        file[6:10] = struct.pack("<HH", side, side)
    elif name == "webp":
        file = bytearray(LOSSLESS["webp animation"])
        file[24:30] = 2 * struct.pack("<I", side - 1)[:3]
    else:
        file = bytearray(encode(smooth(24, 40), "JPEG"))
        start = file.index(b"\xff\xc0")
        file[start + 5 : start + 9] = struct.pack(">HH", side, side)
    return bytes(file)


@pytest.mark.parametrize("name", ["png", "gif", "webp", "jpeg"])
def test_a_decompression_bomb_is_refused_by_its_header(name):
    for decoder in (preprocessing.decode_image, decode):
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than 178956970"):
            decoder(forged(name))


def test_a_batch_of_files_is_refused():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="shape"):
        preprocessing.decode_image([b"one", b"two"])


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


@pytest.mark.parametrize("case", ["1", "2", "3", "4"])
def test_resize_and_crop_agrees_with_recorded_peers(case):
    recorded = np.load(ORACLES)
    image = np.float32(recorded[f"{case}/uint8"]) / 255
    expected = recorded[f"{case}/out"].transpose(1, 2, 0) * STANDARD_DEVIATION + MEAN
    difference = np.abs(preprocessing.resize_and_crop(image, 64) - expected)
    assert difference.mean() < LEVEL / 2  # they round to bytes


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
