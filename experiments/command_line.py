"""What every program shares: a user's mistake is one line and exit status 1."""

import pathlib
import sys

import tensorflow as tf
from absl import app, flags, logging

USER_ERRORS = (ValueError, OSError, FloatingPointError, tf.errors.OpError)


def run(main):
    """Runs an absl program.

    Args:
        main: called with the positional arguments. `USER_ERRORS` that it raises, and
            mistakes in flags or in the configuration, are printed without a traceback.
    """

    def guarded(arguments):
        logging.set_verbosity(logging.INFO)
        try:
            return main(arguments)
        except USER_ERRORS as error:
            print(f"error: {_one_line(error)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130

    app.run(guarded, flags_parser=_parse)


def refuse(arguments):
    """For programs that take flags alone.

    Raises:
        ValueError: naming the first argument that is not a flag.
    """
    if arguments:
        raise ValueError(f"{arguments[0]!r} is not a flag; see --help")


def check_folder(path):
    """Refuses a folder that cannot be written to, before the work that it is for.

    Raises:
        ValueError: if there is a file in its place.
    """
    if pathlib.Path(path).exists() and not pathlib.Path(path).is_dir():
        raise ValueError(f"{path} is a file; name a folder")


def _parse(argv):
    """Parses the flags; the arguments that are left over."""
    try:
        return flags.FLAGS(argv)[1:]
    except (AttributeError, KeyError) as error:
        # What ml_collections raises for a field that the configuration does not have.
        problem = f"no such field: {_one_line(error.args[0])}"
    except (flags.Error, ValueError, TypeError, OSError) as error:
        # Where a configuration refuses its argument, its traceback comes with it.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        problem = lines[-1].removeprefix("ValueError: ")
    print(f"error: {problem}; see --help", file=sys.stderr)
    sys.exit(1)


def _one_line(message):
    return " ".join(str(message).split())
