"""What every program shares: a user's mistake is one line and exit status 1."""

import sys

import tensorflow as tf
from absl import app, logging

USER_ERRORS = (ValueError, OSError, FloatingPointError, tf.errors.OpError)


def run(main):
    """Runs an absl program.

    Args:
        main: called with the positional arguments. `USER_ERRORS` that it raises are
            printed without a traceback.
    """

    started = False

    def guarded(argv):
        nonlocal started
        started = True
        logging.set_verbosity(logging.INFO)
        try:
            return main(argv[1:])
        except USER_ERRORS as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130

    try:
        app.run(guarded)
    except (AttributeError, KeyError) as error:
        # While flags are parsed, this is what ml_collections raises for a field that
        # the configuration does not have; later, it is a fault of ours.
        if started:
            raise
        print(f"error: no such field: {error.args[0]}", file=sys.stderr)
        sys.exit(1)


def refuse(arguments):
    """For programs that take flags alone.

    Raises:
        ValueError: naming the first argument that is not a flag.
    """
    if arguments:
        raise ValueError(f"{arguments[0]!r} is not a flag; see --help")
