"""Builds a data set: lists the source, runs the pipeline, writes the manifest."""

import collections
import dataclasses

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.portability import fn_api_runner

from basic_tf.data import contamination, dataset_folder, example_table, sources
from tools import dataset_pipeline, dataset_plan


def build(request, beam_arguments=()):
    """Builds a data set, unless its folder has it already.

    Args:
        request: `dataset_plan.Request`.
        beam_arguments: strings that `PipelineOptions` takes; Beam's runner on this
            machine without any.

    Returns:
        `(manifest, whether it was there already)`.

    Raises:
        ValueError: as `sources.load` and `Request`; if the folder is for a data set of
            other arguments, too much is broken, no example is left, or the pipeline
            fails.
    """
    folder, described = request.output, request.describe()
    if manifest := dataset_folder.read_manifest(folder, described):
        return manifest, True
    examples = sources.load(request.source, request.data_dir)
    example_table.refuse_bad(request.source, examples, request.max_bad_fraction)
    with dataset_folder.partial_folder(folder) as partial:
        plan = _write_plan(request, partial, examples)
        dataset_folder.take(folder, described, partial)
        try:
            _run(plan, PipelineOptions(beam_arguments))
        except Exception as error:
            # A faster run with the same arguments removes the partial files of this.
            if manifest := dataset_folder.read_manifest(folder, described):
                return manifest, True
            raise ValueError(f"the pipeline failed: {_last_line(error)}") from error
        found = collections.defaultdict(dict, dataset_plan.read_findings(partial))
        examples = _without_bad(examples, found["bad"])
        example_table.refuse_bad(request.source, examples, request.max_bad_fraction)
        manifest = _manifest(request, examples, found)
        lines = example_table.to_json_lines(examples.bad)
        dataset_folder.finish(folder, described, manifest, lines, partial)
    return manifest, False


def _write_plan(request, partial, examples):
    """The plan; its files are written, too."""
    dataset_plan.write_slices(partial, examples)
    if request.evaluation:
        held, keys = contamination.load_evaluation(
            request.evaluation, request.data_dir, request.threshold, request.exhaustive
        )
        dataset_plan.write_evaluation(partial, held, keys)
    total = len(examples) + len(examples.bad)
    plan = dataset_plan.Plan(
        request=request,
        partial=partial,
        images=examples.images.at([]),
        num_examples=len(examples),
        max_bad=int(request.max_bad_fraction * total) - len(examples.bad),
    )
    dataset_plan.write_plan(plan)
    return plan


def _run(plan, options):
    # Beam's own default looks for a program called Prism on the network first.
    is_here = options.view_as(StandardOptions).runner in (None, "DirectRunner")
    runner = fn_api_runner.FnApiRunner() if is_here else None
    with beam.Pipeline(runner, options) as pipeline:
        dataset_pipeline.build(pipeline, plan)


def _last_line(error):
    """What an error of a worker was about, which comes after its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _without_bad(examples, entries):
    """Without the examples of `bad` of the findings, which `bad` then names, too."""
    usable, bad = np.ones(len(examples), bool), []
    for entry in sorted(entries.values(), key=lambda entry: entry["number"]):
        usable[entry.pop("number")] = False
        bad.append(example_table.BadExample(**entry))
    return dataclasses.replace(examples.select(usable), bad=(*examples.bad, *bad))


def _manifest(request, examples, found):
    shards = list(found["shards"].values())
    totals = {
        name: sum(shard[name] for shard in shards)
        for name in ("examples", "captions", "bytes")
    }
    if not totals["examples"]:
        raise ValueError(
            f"{request.source}: no example is left; dropped "
            f"{describe_counts(found['dropped'])}"
        )
    broken = collections.Counter(bad.reason for bad in examples.bad)
    return {
        "arguments": request.describe(),
        "files": dataset_folder.shard_pattern(request.num_shards),
        "read": len(examples) + len(examples.bad),
        **totals,
        "broken": dict(sorted(broken.items())),
        "dropped": found["dropped"],
        "dropped_captions": found["dropped_captions"],
        "contaminated": found["contaminated"],
        "pairs_of_queries": found["queries"],
        "shards": shards,
    }


def describe_counts(numbers):
    """`{name: number}` in a line."""
    return ", ".join(f"{number} {name}" for name, number in numbers.items()) or "none"
