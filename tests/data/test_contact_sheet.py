import base64
import io
import re

import numpy as np
from PIL import Image

from basic_tf.data import contact_sheet


def test_a_sheet_shows_its_pairs_and_escapes_its_texts():
    left, right = np.linspace(0, 1, 32).reshape(2, 4, 4)
    page = contact_sheet.render("a < b", "sum", [(left, right, "x & y: 0.5")])
    assert "a &lt; b" in page and "x &amp; y: 0.5" in page
    encoded = re.findall(r"base64,([^\"]+)", page)
    for image, text in zip((left, right), encoded, strict=True):
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))
        np.testing.assert_array_equal(pixels, np.round(image * 255))
