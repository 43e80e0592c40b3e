"""Pairs of image and texts with random access, and what a source found broken."""

import collections
import dataclasses
import itertools
import json

import numpy as np

from basic_tf.data import image_places

MAX_BAD_FRACTION = 0.01  # of the examples of a source, unless told otherwise
MAX_NAMED = 5  # broken examples that a message names; the file names all


@dataclasses.dataclass(frozen=True)
class BadExample:
    """What was skipped.

    Attributes:
        file: the file that holds it.
        key: which of the file's examples it is; empty where the file is one.
        reason: why it cannot be used.
    """

    file: str
    key: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Examples:
    """Images with their captions: captions and labels in memory, images where they are.

    Attributes:
        images: N encoded images, one of the `image_places`; a list of bytes becomes
            `InMemory`.
        captions: strings, those of the first example, then those of the second, and so
            on.
        labels: N class indices into `label_names`, -1 for none, or empty.
        label_sets: N lists of class indices (an image may carry several), or empty.
        label_names: names of the classes, in the order of their indices.
        keys: N strings that name the examples, or empty.
        caption_counts: `[N]` int, how many captions each example has; one each where
            None is given.
        origins: `[N]` int, ascending: which source of a mixture each comes from; None
            where there is one source.
        weights: share of each source in a batch, where there are several.
        pixels: `[N, S, S, 3]` uint8, the decoded images (`checking.check_images`), or
            None.
        bad: `BadExample`s that were skipped.
    """

    images: object
    captions: list
    labels: list = dataclasses.field(default_factory=list)
    label_sets: list = dataclasses.field(default_factory=list)
    label_names: list = dataclasses.field(default_factory=list)
    keys: list = dataclasses.field(default_factory=list)
    caption_counts: np.ndarray | None = None
    origins: np.ndarray | None = None
    weights: tuple = ()
    pixels: np.ndarray | None = None
    bad: tuple = ()

    def __post_init__(self):
        if type(self.images) is list:
            object.__setattr__(self, "images", image_places.InMemory(self.images))
        if self.caption_counts is None:
            object.__setattr__(self, "caption_counts", np.ones(len(self), np.int64))

    def __len__(self):
        return len(self.images)

    def select(self, keep):
        """The examples whose entry in `keep`, N booleans, is true."""
        keep = np.asarray(keep, bool)
        if len(keep) != len(self):
            raise ValueError(f"{len(keep)} entries for {len(self)} examples")
        lists = {
            name: list(itertools.compress(getattr(self, name), keep))
            for name in ("labels", "label_sets", "keys")
        }
        arrays = {
            name: None if getattr(self, name) is None else getattr(self, name)[keep]
            for name in ("caption_counts", "origins", "pixels")
        }
        return dataclasses.replace(
            self,
            images=self.images.select(keep),
            captions=list(
                itertools.compress(self.captions, np.repeat(keep, self.caption_counts))
            ),
            **lists,
            **arrays,
        )

    def select_captions(self, keep):
        """Without the captions whose entry in `keep` is false.

        An example that is left without any goes, too.
        """
        keep = np.asarray(keep, bool)
        rows = np.repeat(np.arange(len(self)), self.caption_counts)
        counts = np.bincount(rows, keep, len(self)).astype(np.int64)
        kept = dataclasses.replace(
            self,
            captions=list(itertools.compress(self.captions, keep)),
            caption_counts=counts,
        )
        return kept.select(counts > 0)

    def labelled(self):
        """The examples that carry a label."""
        keep = np.array([bool(labels) for labels in self.label_sets])
        return self if not len(keep) or keep.all() else self.select(keep)

    def groups(self):
        """`[(N of the source, its weight)]`, in the order of the examples."""
        if self.origins is None:
            return [(len(self), 1.0)]
        sizes = np.bincount(self.origins, minlength=len(self.weights)).tolist()
        pairs = zip(sizes, self.weights, strict=True)
        return [(size, weight) for size, weight in pairs if size]


class Collector:
    """Examples as a source comes upon them, one after another."""

    def __init__(self):
        self.places, self.texts, self.labels, self.keys = [], [], [], []
        self.bad = []

    def add(self, place, texts, labels, key):
        """Adds an example.

        Args:
            place: where its image is, as `finish` turns it into images.
            texts: its captions; made of the labels where there are none.
            labels: names of its classes.
            key: names the example.
        """
        self.places.append(place)
        self.texts.append(texts or [label_text(labels)])
        self.labels.append(labels)
        self.keys.append(key)

    def skip(self, file, key, reason):
        """Counts a broken example; arguments as those of `BadExample`."""
        self.bad.append(BadExample(file, key, reason))

    def finish(self, source, make_images):
        """All of them.

        Args:
            source: what an error calls the source.
            make_images: function from the places to one of the `image_places`.

        Returns:
            `Examples`.

        Raises:
            ValueError: if there is none.
        """
        if not self.places:
            found = f": {describe(self.bad)}" if self.bad else ""
            raise ValueError(f"{source} holds no usable example{found}")
        names = sorted({name for labels in self.labels for name in labels})
        of_name = {name: index for index, name in enumerate(names)}
        sets = [[of_name[name] for name in labels] for labels in self.labels]
        return Examples(
            images=make_images(self.places),
            captions=list(itertools.chain.from_iterable(self.texts)),
            labels=[labels[0] if labels else -1 for labels in sets] if names else [],
            label_sets=sets if names else [],
            label_names=names,
            keys=self.keys,
            caption_counts=np.array([len(texts) for texts in self.texts]),
            bad=tuple(self.bad),
        )


def read_files(source, paths, read_file, make_images):
    """Examples that files hold.

    Args:
        source: what an error calls the source.
        paths: of the files.
        read_file: called with a `Collector`, the number of a file and its path; adds
            examples whose place is a row of numbers.
        make_images: function from `paths` and all rows, int64, to the images.

    Returns:
        `Examples`, in the order of the files.
    """
    found = Collector()
    for number, path in enumerate(paths):
        read_file(found, number, path)
    return found.finish(
        source, lambda rows: make_images(paths, np.array(rows, np.int64))
    )


def label_text(names):
    """What a labelled image's caption is (BASIC section 7.1): `"a and b and c"`."""
    return " and ".join(names)


def describe(bad):
    """Broken examples in a line: how many of each reason, where most are, some names.

    Args:
        bad: `BadExample`s.
    """
    reasons = collections.Counter(example.reason for example in bad)
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    files = collections.Counter(example.file for example in bad)
    places = [
        f"{count} in {file}" if count > 1 else _name(file, bad)
        for file, count in files.most_common(MAX_NAMED)
    ]
    more = ", ..." if len(files) > MAX_NAMED else ""
    return f"{counts} ({', '.join(places)}{more})"


def _name(file, bad):
    key = next(example.key for example in bad if example.file == file)
    return f"{file}, {key}" if key else file


def refuse_bad(source, examples, max_bad_fraction=MAX_BAD_FRACTION, remedy="mend them"):
    """Refuses a source of which too much is broken.

    Args:
        source: its name, for the message.
        examples: `Examples`.
        max_bad_fraction: share of what it holds that may have been skipped.
        remedy: what the message says to do.

    Raises:
        ValueError: if more than `max_bad_fraction` of what it holds was skipped, with
            the counts.
    """
    total = len(examples) + len(examples.bad)
    if len(examples.bad) > max_bad_fraction * total:
        raise ValueError(
            f"{source}: {len(examples.bad)} of {total} examples are broken, more than "
            f"max_bad_fraction {max_bad_fraction}: {describe(examples.bad)}; "
            f"{remedy}"
        )


def to_json_lines(bad):
    """Broken examples as JSON, a line each: file, key and reason."""
    rows = [json.dumps(dataclasses.asdict(example)) for example in bad]
    return "".join(f"{row}\n" for row in rows)
