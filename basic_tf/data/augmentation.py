"""The augmentations of a phase: `{kind: its options}`, each a random change of images.

| kind | what it does | options |
|---|---|---|
| `crop` | takes a part of the whole image and resizes it | `area`, `aspect_ratio` |
| `flip` | swaps left and right | `probability` |
| `affine` | rotates, shears, zooms and shifts | `max_rotation`, `max_shear`, ... |

They come in this order, whatever that of the dictionary; an option that is not given
has the default of its function.
"""

import inspect

import tensorflow as tf

from basic_tf.data import affine, random_crop

# The function, and what is added to the seed: different kinds have nothing to do with
# each other, nor with the other draws of a step (`batches`).
_KINDS = {
    "crop": (random_crop.resized_crop, 3 << 32),
    "flip": (random_crop.flip, 4 << 32),
    "affine": (affine.augment_affine, 0),
}


def check(augmentation):
    """Refuses what `of_image` and `of_batch` could not do.

    Args:
        augmentation: `{kind: its options}`.

    Raises:
        ValueError: for an unknown kind or option, with the known ones, or an option of
            no such value.
    """
    for kind, options in augmentation.items():
        if kind not in _KINDS:
            known = ", ".join(_KINDS)
            owners = [name for name in _KINDS if kind in _options(name)]
            hint = f"; it is an option of {owners[0]}" if owners else ""
            raise ValueError(f"augmentation {kind!r} is none of {known}{hint}")
        known = _options(kind)
        if not isinstance(options, dict):
            raise ValueError(
                f"augmentation {kind} is {options!r} and must be a dictionary, of "
                f"{', '.join(known)}"
            )
        for option in options:
            if option not in known:
                raise ValueError(
                    f"augmentation {kind} has no option {option!r}; it has "
                    f"{', '.join(known)}"
                )
        _try(kind, options)


def _try(kind, options):
    """Each function checks its options."""
    images, place = tf.zeros([1, 2, 2, 3]), tf.constant(0, tf.int64)
    try:
        if kind == "crop":
            of_image(images[0], 0, place, 2, {kind: options})
        else:
            of_batch(images, 0, place, {kind: options})
    except (TypeError, ValueError) as error:
        raise ValueError(f"augmentation {kind}: {error}") from None


def of_image(image, seed, place, image_size, augmentation):
    """The crop of one image.

    Args:
        image: float32 `[H, W, 3]` in [0, 1].
        seed: int.
        place: int64 `[]`, a number for the step and the place in its batch.
        image_size: side S of the result.
        augmentation: `{kind: its options}` with `crop`.

    Returns:
        float32 `[S, S, 3]` in [0, 1].
    """
    crop, offset = _KINDS["crop"]
    return crop(image, _pair(seed + offset, place), image_size, **augmentation["crop"])


def of_batch(images, seed, step, augmentation):
    """All but the crop, of a batch.

    Args:
        images: float32 `[B, S, S, 3]` in [0, 1].
        seed: int.
        step: int64 `[]`.
        augmentation: `{kind: its options}`.

    Returns:
        As `images`.
    """
    for kind, (change, offset) in _KINDS.items():
        if kind in augmentation and kind != "crop":
            images = change(images, _pair(seed + offset, step), **augmentation[kind])
    return images


def _pair(seed, number):
    return tf.stack([tf.constant(seed, tf.int64), number])


def _options(kind):
    parameters = inspect.signature(_KINDS[kind][0]).parameters.values()
    return [p.name for p in parameters if p.default is not p.empty]
