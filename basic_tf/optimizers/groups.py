"""Rules by variable path: which variable decays, which is trained."""

import re

NUM_NAMED = 8  # variables at most in a message


def match_rules(variables, rules):
    """The value that a table of rules gives each variable.

    Args:
        variables: Keras variables (anything with a `path`).
        rules: `((pattern, value), ...)`; a pattern is searched in the path.

    Returns:
        The values, in the order of `variables`.

    Raises:
        ValueError: naming the first variables that match no pattern, or several, or the
            pattern that is no regular expression.
    """
    for pattern, _ in rules:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    matches = [
        [value for pattern, value in rules if re.search(pattern, variable.path)]
        for variable in variables
    ]
    wrong = [
        f"{variable.path} ({len(values)} patterns)"
        for variable, values in zip(variables, matches, strict=True)
        if len(values) != 1
    ]
    if wrong:
        patterns = ", ".join(pattern for pattern, _ in rules)
        raise ValueError(
            f"every variable must match exactly one of {patterns}; "
            f"{len(wrong)} do not: {', '.join(wrong[:NUM_NAMED])}"
            + (", ..." if len(wrong) > NUM_NAMED else "")
        )
    return [values[0] for values in matches]
