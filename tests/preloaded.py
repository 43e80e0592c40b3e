"""What the process imports that others are forked from: see child_processes."""

import keras  # noqa: F401
import keras_hub  # noqa: F401
import tensorflow  # noqa: F401
import tensorflow_text  # noqa: F401
