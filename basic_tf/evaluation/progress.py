"""How far long work has come, on the standard error stream."""

import sys
import time

DELAY = 5.0  # seconds that pass before anything is shown
EVERY_ON_SCREEN, EVERY_IN_FILE = 0.5, 30.0  # seconds between two updates
WIDTH = 24


class Progress:
    """A bar that is drawn anew on a screen; in a file, a line now and then.

    Args:
        title: what is worked on.
        total: how many there are.
        stream: to write to; standard error when None.
        clock: function to seconds.
    """

    def __init__(self, title, total, stream=None, clock=time.monotonic):
        self._title, self._total = title, total
        self._stream = stream or sys.stderr
        self._clock, self._start = clock, clock()
        self._on_screen = self._stream.isatty()
        self._next = self._start + DELAY
        self._is_shown = False

    def update(self, done):
        """Says that `done` of all are done."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + (EVERY_ON_SCREEN if self._on_screen else EVERY_IN_FILE)
        left = (now - self._start) * (self._total - done) / max(done, 1)
        bar = "#" * (WIDTH * done // self._total)
        text = f"{self._title} [{bar:-<{WIDTH}}] {done:,}/{self._total:,}, {left:.0f} s"
        start, end = ("\r", "\033[K") if self._on_screen else ("", "\n")
        print(f"{start}{text} left", end=end, file=self._stream, flush=True)
        self._is_shown = True

    def close(self):
        """Leaves the bar behind."""
        if self._is_shown and self._on_screen:
            print(file=self._stream, flush=True)
