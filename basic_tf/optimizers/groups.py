"""Rules by variable path: which variable decays, which is trained."""

import re


def match_rules(variables, rules):
    """The value that a table of rules gives each variable.

    Args:
        variables: Keras variables (anything with a `path`).
        rules: `((pattern, value), ...)`; a pattern is searched in the path.

    Returns:
        The values, in the order of `variables`.

    Raises:
        ValueError: naming the variables that match no pattern, or several.
    """
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
            f"every variable must match exactly one of {patterns}; these do not: "
            + ", ".join(wrong)
        )
    return [values[0] for values in matches]


def select(variables, pattern):
    """The variables whose path contains the pattern.

    Raises:
        ValueError: if none does.
    """
    selected = [v for v in variables if re.search(pattern, v.path)]
    if not selected:
        tops = sorted({v.path.split("/")[0] for v in variables})
        raise ValueError(
            f"no variable path matches {pattern!r}; paths begin with {', '.join(tops)}"
        )
    return selected
