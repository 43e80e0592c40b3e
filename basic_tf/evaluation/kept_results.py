"""Evaluations of a run whose results a folder keeps: what is there is not repeated."""

import time

from basic_tf.evaluation import results


def evaluate(evaluations, embedder, folder, details, announce):
    """Evaluates what has no result yet.

    Args:
        evaluations: `evaluations.Evaluation`s, in their order.
        embedder: `embedder.Embedder`.
        folder: of the results, made when missing.
        details: what each record holds besides, a dictionary of JSON values.
        announce: called with a name, its `TaskResult`, and whether it was there.

    Returns:
        `{name: TaskResult}`.

    Raises:
        ValueError: before the first is evaluated, for missing data or results of other
            inputs; and as `Evaluation.run`.
    """
    model_hash = results.model_fingerprint(embedder.run.model)
    wanted, records, found = {}, {}, {}
    for each in evaluations:
        wanted[each.name] = each.identity(model_hash, embedder.run.image_size)
        records[each.name] = results.find(folder, each.name, wanted[each.name])
        each.require_data()
    for each in evaluations:
        record = records[each.name]
        if record:
            found[each.name] = each.restore(folder, record)
        else:
            start = time.monotonic()
            found[each.name] = each.run(embedder)
            seconds = {"seconds": round(time.monotonic() - start, 3)}
            results.write(
                folder,
                each.name,
                wanted[each.name],
                found[each.name],
                details | seconds,
            )
        announce(each.name, found[each.name], bool(record))
    return found
