"""Files of sources, written as other programs write them."""

import io
import tarfile

from PIL import Image

from tests.data.image_files import encode, smooth


def picture(color="red", form="PNG"):
    """The content of a small image file of one colour."""
    return encode(Image.new("RGB", (4, 4), color), form)


def cut_jpeg():
    """A photograph whose second half did not arrive."""
    content = encode(smooth(32, 32), "JPEG")
    return content[: len(content) // 2]


def write_tar(path, members):
    """Writes `{name: content}` as a tar archive, in their order."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            content = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def image_bytes(examples):
    """The content of every image, in their order."""
    read = examples.images.reader()
    return [read(index).numpy() for index in range(len(examples))]


def reasons(examples):
    """`[(file's name, key, reason)]` of what was skipped."""
    return [(bad.file.split("/")[-1], bad.key, bad.reason) for bad in examples.bad]
