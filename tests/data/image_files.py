"""Image files of every kind that tests decode, and PIL's decode of them."""

import io
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

LEVEL = 1 / 255  # one step of an 8-bit image


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
MIXED = [
    LOSSLESS[name] for name in ("png rgba", "gif", "bmp palette", "webp animation")
]
MIXED.append(encode(smooth(24, 40), "JPEG", exif=exif(">", 7)))


def bombs():
    """Files of a few bytes that declare hundreds of megapixels, as many as they can."""
    files = {
        "png": bytearray(LOSSLESS["png rgb"]),
        "gif": bytearray(LOSSLESS["gif"]),
        "webp extended": bytearray(LOSSLESS["webp animation"]),
        "webp lossless": bytearray(LOSSLESS["webp rgb"]),
        "webp lossy": bytearray(encode(smooth(24, 40), "WEBP")),
        "jpeg": bytearray(encode(smooth(24, 40), "JPEG")),
    }
    side = 30_000
    files["png"][16:24] = struct.pack(">II", side, side)
    files["png"][29:33] = struct.pack(">I", zlib.crc32(files["png"][12:29]))
    files["gif"][6:10] = struct.pack("<HH", side, side)
    files["webp extended"][24:30] = 2 * struct.pack("<I", side - 1)[:3]
    files["webp lossless"][21:25] = struct.pack("<I", 2**28 - 1)  # 16384 x 16384
    files["webp lossy"][26:30] = struct.pack("<HH", 2**14 - 1, 2**14 - 1)
    start = files["jpeg"].index(b"\xff\xc0")
    files["jpeg"][start + 5 : start + 9] = struct.pack(">HH", side, side)
    return {name: bytes(file) for name, file in files.items()}


BOMBS = bombs()
