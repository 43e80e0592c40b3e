"""What a run trains on: its examples, those that are broken told, and its tokenizer."""

import pathlib

from absl import logging

from basic_tf import files
from basic_tf.data import checking, example_table, mixture
from basic_tf.data import tokenizer as tokenizers
from basic_tf.training import distribution, loaded_run

MAX_TOO_LONG_SHARE = 0.5  # of the captions; more is a mistake, not noise


def load(config, workdir):
    """Training examples that can be used, and the tokenizer.

    What is broken is left out and listed in `bad_examples.jsonl`, and so, without a
    list, are captions that are too long.

    Raises:
        ValueError: if more than `data.max_bad_fraction` is broken or more than half of
            the captions are too long.
    """
    source = _describe_source(config.data.train)
    examples = mixture.load(config.data.train, config.data.data_dir)
    path = workdir / "tokenizer.model"
    if path.is_file():
        model = path.read_bytes()
    else:
        model = _first_tokenizer(config, examples.captions)
        if distribution.is_chief():
            files.write_whole(path, model)
    max_length = config.model.text_encoder.max_length
    tokenizer = loaded_run.make_tokenizer(config, model)
    keep = tokenizer.lengths(examples.captions).numpy() <= max_length
    if keep.sum() < max(1, (1 - MAX_TOO_LONG_SHARE) * len(keep)):
        raise ValueError(
            f"{source}: {(~keep).sum()} of {len(keep)} captions have more "
            f"than {max_length} tokens; shorten them, or raise "
            "model.text_encoder.max_length"
        )
    logging.info(
        "%s: %d examples, %d dropped for captions of more than %d tokens; %d pieces",
        source, len(examples), (~keep).sum(), max_length,
        tokenizer.vocabulary_size,
    )  # fmt: skip
    # Pixels of the image size are of no use to a crop of the whole image.
    crops = all(
        phase.kind == "simclr" or "crop" in phase.augmentation
        for phase in config.phases.values()
    )
    kept_size = None if crops else config.model.image_encoder.image_size
    examples = checking.check_images(examples.select_captions(keep), kept_size)
    _report_bad(config, source, examples, workdir / "bad_examples.jsonl")
    return examples, tokenizer


def _describe_source(source):
    return source if isinstance(source, str) else " + ".join(name for name, _ in source)


def _report_bad(config, source, examples, path):
    """Lists what was skipped; stops where it is too much, or not what it was before."""
    content = example_table.to_json_lines(examples.bad)
    if path.is_file() and path.read_text() != content:
        logging.warning(
            "other examples are broken than when the run began, so that its batches "
            "are others from here on; see %s",
            path,
        )
    if distribution.is_chief():
        files.write_whole(path, content)
    if examples.bad:
        logging.warning(
            "%s: skipped %s, all listed in %s",
            source, example_table.describe(examples.bad), path,
        )  # fmt: skip
    limit = config.data.get("max_bad_fraction", example_table.MAX_BAD_FRACTION)
    remedy = "mend them, or raise data.max_bad_fraction"
    example_table.refuse_bad(source, examples, limit, remedy)


def _first_tokenizer(config, captions):
    """Content of `tokenizer.model`: the initial run's, or trained on the captions."""
    if config.get("initial_run"):
        return (pathlib.Path(config.initial_run) / "tokenizer.model").read_bytes()
    return tokenizers.train(captions, config.tokenizer.vocabulary_size)
