"""From the bytes of an image file to RGB, in TensorFlow ops only."""

import functools

import tensorflow as tf

MAX_PIXELS = 178_956_970  # PIL's limit against decompression bombs
TOO_LARGE = f"image of more than {MAX_PIXELS} pixels"
_HEADER_SIZE = 41  # bytes, up to the name of a PNG's second chunk


def decode_image(image_bytes):
    """Decodes an image file to RGB.

    JPEG (grayscale, RGB, CMYK, YCCK; turned upright by the Exif orientation), PNG
    (every colour type and depth), GIF and WebP (first frame) and BMP (8, 24 and 32 bits
    per pixel, uncompressed); alpha is composited over white. Unlike in PIL, transparent
    pixels of a GIF are black, as TensorFlow's decoder leaves them and does not tell
    which they are, and an orientation is looked for in a JPEG's first segments only.

    Args:
        image_bytes: string `[]`, the content of the file.

    Returns:
        float32 `[H, W, 3]` in [0, 1].

    Raises:
        tf.errors.InvalidArgumentError: for an empty string, another format, truncated
            or corrupt data, another kind of BMP, and more than `MAX_PIXELS` pixels.
    """
    image_bytes = tf.ensure_shape(image_bytes, [])
    header = _read_bytes(image_bytes, 0, _HEADER_SIZE)
    signatures = tf.constant(_SIGNATURES, tf.int64)
    matches = tf.reduce_all((signatures == header) | (signatures == ord(".")), axis=1)
    index = tf.cast(tf.where(matches)[0, 0], tf.int32)
    branches = [lambda decode=d: decode(image_bytes, header) for d in _FORMATS.values()]
    return tf.ensure_shape(tf.switch_case(index, branches), [None, None, 3])


def _decode_jpeg(data, header):
    data = _require_size(data, tf.io.extract_jpeg_shape(data)[:2])
    # PIL decodes with this transform; TensorFlow's default is a coarser one.
    pixels = tf.io.decode_jpeg(data, 3, dct_method="INTEGER_ACCURATE")
    orientation = _exif_orientation(data)

    def turn():
        upside_down = tf.reduce_any(orientation == [3, 4, 7, 8])
        left_right = tf.reduce_any(orientation == [2, 3, 6, 7])
        axes = tf.where(orientation >= 5, [1, 0, 2], [0, 1, 2])
        mirrored = tf.boolean_mask([0, 1], [upside_down, left_right])
        return tf.reverse(tf.transpose(pixels, axes), mirrored)

    return _over_white(tf.cond(orientation == 1, lambda: tf.identity(pixels), turn))


def _exif_orientation(data):
    """The Exif orientation of a JPEG file, int64; 1, upright, where there is none."""

    def is_exif(head):
        return tf.reduce_all(head[4:] == [*b"Exif\0\0"]) & (head[1] == 0xE1)

    def is_other(position, head):
        # Exif stands among the application segments and comments, before any table.
        skipped = (head[1] >= 0xE0) & (head[1] <= 0xEF) | (head[1] >= 0xFE)
        return (head[0] == 0xFF) & skipped & ~is_exif(head)

    def next_segment(position, head):
        # A marker may be preceded by any number of bytes 0xff.
        step = 2 + _integer(head[2:4], True)
        position += tf.where(head[1] == 0xFF, tf.ones_like(step), step)
        return position, _read_bytes(data, position, 10)

    def parse():
        length = _integer(head[2:4], True) - 8
        tiff = tf.strings.substr(data, position + 10, length)
        start = _read_bytes(tiff, 0, 8)
        big_endian = start[0] == ord("M")
        directory = _integer(start[4:], big_endian)
        count = _integer(_read_bytes(tiff, directory, 2), big_endian)
        count = tf.cast(tf.maximum(12 * count, 12), tf.int32)  # 0 cannot be read
        entries = tf.reshape(_read_bytes(tiff, directory + 2, count), [-1, 12])
        tags = _integer(entries[:, :2], big_endian)
        values = _integer(entries[:, 8:10], big_endian)
        return tf.concat([values[(tags == 0x0112) & (values <= 8)], [1]], axis=0)[0]

    # Exif comes first or second in practice; the limit bounds the time for forged
    # files.
    start = (tf.constant(2, tf.int64), _read_bytes(data, 2, 10))
    position, head = tf.while_loop(is_other, next_segment, start, maximum_iterations=32)
    return tf.cond(is_exif(head), parse, lambda: tf.constant(1, tf.int64))


def _decode_png(data, header, channels=4, is_gray=False):
    data = _require_size(data, _integer(tf.reshape(header[16:24], [2, 4]), True))
    pixels = tf.io.decode_png(data, channels, tf.uint16)
    if is_gray:  # below 8 bits the opaque alpha of TensorFlow 2.21 is 2^bits - 1
        alpha = tf.cast(tf.cast(pixels[..., 3:], tf.bool), tf.uint16) * tf.uint16.max
        alpha = tf.where(header[24] < 8, alpha, pixels[..., 3:])
        pixels = tf.concat([pixels[..., :3], alpha], axis=-1)
    return _over_white(pixels)


def _decode_gif(data, header):
    data = _require_size(data, _integer(tf.reshape(header[6:10], [2, 2]), False))
    return _over_white(tf.io.decode_image(data, expand_animations=False))


def _decode_bmp(data, header):
    header_size = _integer(header[14:18], False)
    bits, compression = _integer(header[28:30], False), _integer(header[30:34], False)
    supported = (compression == 0) & tf.reduce_any(bits == [8, 24, 32])
    message = ["a BMP must have 8, 24 or 32 uncompressed bits per pixel; it has", bits]
    data = _require(data, supported & (header_size >= 40), message)

    def look_up():
        # TensorFlow takes the indices for gray levels.
        palette = tf.reshape(_read_bytes(data, 14 + header_size, 1024), [256, 4])
        index = tf.cast(tf.io.decode_bmp(data)[..., 0], tf.int32)
        return tf.gather(tf.cast(palette[:, 2::-1], tf.uint8), index)

    # The fourth byte of 32 is unused without compression, as PIL has it.
    pixels = tf.cond(bits == 8, look_up, lambda: tf.io.decode_bmp(data, 3))
    return _over_white(pixels)


def _decode_webp(data, header):
    data = _require_size(data, _webp_size(header))
    # Only the extended format has flags here.
    flags = header[20] * tf.cast(_is_chunk(header, b"VP8X"), tf.int64)
    # TensorFlow 2.21 allocates RGB for an animation without alpha, then writes RGBA
    # past its end (heap corruption): set the alpha flag next to that of the animation.
    length = tf.strings.length(data)
    parts = tf.strings.substr(data, tf.minimum(length, [0, 20, 21]), [20, 1, length])
    parts = tf.where([False, flags & 2 != 0, False], b"\x12", parts)
    data = tf.strings.reduce_join(parts)
    return _over_white(tf.io.decode_image(data, expand_animations=False))


def _webp_size(header):
    """Width and height as the first chunk has them: extended, lossless, else lossy."""
    extended = 1 + _integer(tf.reshape(header[24:30], [2, 3]), False)
    bits = _integer(header[21:25], False)
    lossless = 1 + tf.stack([bits, bits // 2**14]) % 2**14
    lossy = _integer(tf.reshape(header[26:30], [2, 2]), False) % 2**14
    size = tf.where(_is_chunk(header, b"VP8L"), lossless, lossy)
    return tf.where(_is_chunk(header, b"VP8X"), extended, size)


def _is_chunk(header, name):
    return tf.reduce_all(header[12:16] == [*name])


def _refuse(data, header):
    # As numbers: bytes that are not UTF-8 break the error message.
    message = "not a JPEG, PNG, GIF, BMP or WebP image; its first bytes are"
    _require(data, False, [message, header[:4]])
    return tf.zeros([1, 1, 3])


# The start of a file, a dot for any byte, and its decoder; the first match counts.
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_OF = _PNG + 17 * b"."  # of any size and depth and the colour type that follows
_FORMATS = {
    b"\xff\xd8\xff": _decode_jpeg,
    _PNG_OF + b"\0": functools.partial(_decode_png, is_gray=True),
    # RGB, with no chunk before the data that could declare a colour transparent.
    _PNG_OF + b"\2" + 11 * b"." + b"IDAT": functools.partial(_decode_png, channels=3),
    # A palette: alpha is added where it has any, and must not be asked for (as gray's).
    _PNG_OF + b"\3": functools.partial(_decode_png, channels=0),
    _PNG: _decode_png,
    b"GIF8": _decode_gif,
    b"BM": _decode_bmp,
    b"RIFF....WEBP": _decode_webp,
    b"": _refuse,
}
_SIGNATURES = [list(start.ljust(_HEADER_SIZE, b".")) for start in _FORMATS]


def _read_bytes(data, position, count):
    """`count` bytes of `data` from `position` on, int64; zeros past the end."""
    end = tf.cast(tf.strings.length(data), tf.int64)
    part = tf.strings.substr(data, tf.minimum(end, position), tf.cast(count, tf.int64))
    return tf.cast(tf.io.decode_raw(part, tf.uint8, fixed_length=count), tf.int64)


def _integer(octets, big_endian):
    """Joins the bytes on the last axis of `octets` to unsigned integers, int64."""
    powers = [256**i for i in range(octets.shape[-1])]
    # A constant each: a reversed slice of one makes Grappler print an error.
    little, big = tf.constant(powers, tf.int64), tf.constant(powers[::-1], tf.int64)
    return tf.reduce_sum(octets * tf.where(big_endian, big, little), axis=-1)


def _require(data, condition, message):
    """`data`, for ops that must not run unless `condition` holds."""
    # tf.debugging.Assert would wrap the op in a tf.cond, too dear for each image.
    check = tf.raw_ops.Assert(condition=condition, data=message, summarize=4)
    with tf.control_dependencies([check]):
        return tf.identity(data)


def _require_size(data, size):
    """`data`, for ops that must not allocate more than `MAX_PIXELS` pixels."""
    pixels = tf.reduce_prod(tf.cast(size, tf.float64))  # int64 could overflow
    return _require(data, pixels <= MAX_PIXELS, [f"{TOO_LARGE}:", size])


def _over_white(pixels):
    """Unsigned integers `[H, W, 3 or 4]` to float32 `[H, W, 3]` in [0, 1]."""
    values = tf.cast(pixels, tf.float32) * (1.0 / pixels.dtype.max)
    if values.shape[-1] == 3:
        return values
    return tf.cond(
        tf.shape(values)[-1] == 4,
        lambda: values[..., :3] * values[..., 3:] + (1.0 - values[..., 3:]),
        lambda: tf.identity(values),
    )
