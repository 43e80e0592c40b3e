import base64
import io

import numpy as np
import pytest
from PIL import Image

from basic_tf import data_uris


@pytest.mark.parametrize("offset", [-0.4, 0.0, 0.4])
@pytest.mark.parametrize("shape", [(7, 12, 3), (21, 12)])
def test_a_png_has_the_nearest_of_256_levels(shape, offset):
    levels = np.arange(1, 253, dtype=np.uint8).reshape(shape)
    uri = data_uris.of_pixels(np.float32((levels + offset) / 255))
    head, _, data = uri.partition(",")
    assert head == "data:image/png;base64"
    png = Image.open(io.BytesIO(base64.b64decode(data)))
    np.testing.assert_array_equal(np.asarray(png), levels)


def test_a_file_of_any_kind_is_whole():
    content = bytes(range(256))
    head, _, data = data_uris.of_content("image/svg+xml", content).partition(",")
    assert head == "data:image/svg+xml;base64"
    assert base64.b64decode(data) == content
