"""One SavedModel that takes files and strings: decoding and tokenising in the graph."""

import tensorflow as tf

from basic_tf.data import preprocessing
from basic_tf.evaluation import prompts, zero_shot

IMAGES = tf.TensorSpec([None], tf.string, "image_bytes")
TEXTS = tf.TensorSpec([None], tf.string, "texts")
LABELS = tf.TensorSpec([None], tf.string, "labels")


class ZeroShotServer(tf.Module):
    """A dual encoder as signatures for TF Serving.

    | signature | takes | gives |
    |---|---|---|
    | `serving_default` | `image_bytes [N]` | `scores [N, C]`, `labels [C]` |
    | `classify` | `image_bytes [N]`, `labels [C]` | `scores [N, C]`, `labels [C]` |
    | `encode_image` | `image_bytes [N]` | `embeddings [N, D]` |
    | `encode_text` | `texts [N]` | `embeddings [N, D]`, `token_ids [N, L]` |

    `scores` are probabilities, the softmax of `exp(t) * cosine` over the labels.
    TF Serving's REST API takes these in the column form, `{"inputs": {...}}`.
    Image bytes are the content of a file as `decoding.decode_image` reads them;
    a name that ends in `_bytes` takes `{"b64": ...}` in TF Serving's REST API. Labels
    are put into the templates that the model was exported with.

    Args:
        run: `loaded_run.LoadedRun`.
        labels: C default labels.
        templates: texts with one slot `{}`.

    Raises:
        ValueError: for a template without exactly one slot, or no label.
    """

    def __init__(self, run, labels, templates):
        super().__init__()
        prompts.check_templates(templates)
        # Tracked are the variables, not the model's thousand Keras objects, which take
        # time to load.
        self._run = run
        self._variables = [variable.value for variable in run.model.variables]
        self._templates = templates
        self._labels = tf.constant(labels)
        self._classifier = tf.Variable(
            zero_shot.classifier(self._encode, labels, templates), trainable=False
        )

    def save(self, directory):
        """Writes the SavedModel; reading it needs tensorflow and tensorflow_text."""
        tf.saved_model.save(
            self,
            str(directory),
            signatures={
                "serving_default": self.serving_default,
                "classify": self.classify,
                "encode_image": self.encode_image,
                "encode_text": self.encode_text,
            },
        )

    @tf.function(input_signature=[IMAGES], autograph=False)
    def serving_default(self, image_bytes):
        return self._scores(image_bytes, self._classifier, self._labels)

    @tf.function(input_signature=[IMAGES, LABELS], autograph=False)
    def classify(self, image_bytes, labels):
        classifier = zero_shot.classifier(self._encode, labels, self._templates)
        return self._scores(image_bytes, classifier, labels)

    @tf.function(input_signature=[IMAGES], autograph=False)
    def encode_image(self, image_bytes):
        size = self._run.image_size
        images = tf.map_fn(
            lambda file: preprocessing.load_image(file, size),
            image_bytes,
            fn_output_signature=tf.TensorSpec([size, size, 3], tf.float32),
        )
        return {"embeddings": self._run.model.encode_image(images)}

    @tf.function(input_signature=[TEXTS], autograph=False)
    def encode_text(self, texts):
        token_ids = self._run.tokenizer(texts)
        return {
            "embeddings": self._run.model.encode_text(token_ids),
            "token_ids": token_ids,
        }

    def _encode(self, texts):
        return self._run.model.encode_text(self._run.tokenizer(texts))

    def _scores(self, image_bytes, classifier, labels):
        embeddings = self.encode_image(image_bytes)["embeddings"]
        similarities = tf.matmul(embeddings, classifier, transpose_b=True)
        scores = tf.nn.softmax(tf.exp(self._run.model.log_scale) * similarities)
        return {"scores": scores, "labels": labels}
