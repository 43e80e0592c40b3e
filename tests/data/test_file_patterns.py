import subprocess

import pytest

from basic_tf.data import file_patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1..3}.tar",
        "a{08..11}",
        "a{3..1}",
        "{a,b}{0..1}",
        "{a,b{1..2}}c",
        "a{b}c",
        "a{x,}b",
        "a{099..101}",
    ],
)
def test_braces_expand_as_in_a_shell(pattern):
    command = ["bash", "-c", f"printf '%s\\n' {pattern}"]
    shell = subprocess.run(command, capture_output=True, text=True, check=True)
    assert file_patterns.expand_braces(pattern) == shell.stdout.splitlines()


def test_wildcards_are_sorted_within_braces(tmp_path):
    for name in ("b-2.tar", "b-1.tar", "a-1.tar", "c-1.tar"):
        (tmp_path / name).touch()
    found = file_patterns.find(f"{tmp_path}/{{b,a}}-*.tar")
    assert [path.split("/")[-1] for path in found] == ["b-1.tar", "b-2.tar", "a-1.tar"]


@pytest.mark.parametrize("pattern", ["a-{0..1}.tar", "b*.tar"])
def test_a_file_that_is_not_there_is_named(tmp_path, pattern):
    (tmp_path / "a-0.tar").touch()
    with pytest.raises(FileNotFoundError, match=r"no file .*(a-1|b\*)\.tar"):
        file_patterns.find(f"{tmp_path}/{pattern}")


@pytest.mark.parametrize("pattern", ["{0..100000}", "{0..99999}{0..9}"])
def test_too_many_names_are_refused(pattern):
    with pytest.raises(ValueError, match="stands for more than 100000 names"):
        file_patterns.expand_braces(pattern)
