import io

from basic_tf.evaluation import progress


class Stream(io.StringIO):
    def __init__(self, on_screen):
        super().__init__()
        self.on_screen = on_screen

    def isatty(self):
        return self.on_screen


def show(on_screen, seconds):
    """What is written when 100 of 1,000 are done every so many seconds."""
    stream, now = Stream(on_screen), [0.0]
    shown = progress.Progress("serif", 1000, stream, lambda: now[0])
    for done in range(100, 1001, 100):
        now[0] += seconds
        shown.update(done)
    shown.close()
    return stream.getvalue()


def test_short_work_shows_nothing():
    assert show(True, 0.4) == ""


def test_a_screen_has_one_line_that_is_drawn_anew():
    text = show(True, 1)
    assert text.count("\n") == 1 and text.endswith("\n")
    first = text.split("\r")[1]
    assert first == "serif [############------------] 500/1,000, 5 s left\033[K"


def test_a_file_has_a_line_now_and_then():
    lines = show(False, 10).splitlines()
    assert lines[0] == "serif [##----------------------] 100/1,000, 90 s left"
    assert [line.split()[2] for line in lines] == [
        f"{done}/1,000," for done in (100, 400, 700, "1,000")
    ]
