"""What every program shares: a user's mistake is one line and exit status 1."""

import sys

from absl import app, logging


def run(main, user_errors=(ValueError, OSError, FloatingPointError)):
    """Runs an absl program.

    Args:
        main: called with the positional arguments.
        user_errors: exceptions that are printed without a traceback.
    """

    def guarded(argv):
        logging.set_verbosity(logging.INFO)
        try:
            return main(argv[1:])
        except user_errors as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130

    app.run(guarded)


def refuse(arguments):
    """For programs that take flags alone.

    Raises:
        ValueError: naming the first argument that is not a flag.
    """
    if arguments:
        raise ValueError(f"{arguments[0]!r} is not a flag; see --help")
