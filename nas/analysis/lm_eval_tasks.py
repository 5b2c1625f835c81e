"""Downstream evaluation of a trained decoder on tasks of lm-eval."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from torch import nn

from nas.environment.device import available_device
from nas.evaluation.retrofit import CheckpointSource
from nas.evaluation.saved_networks import read_if_saved
from nas.request.job import EvaluationJob, identity
from nas.store.store import Store
from results.records.row import Row
from search_spaces.architecture.checkpoint import read_record
from search_spaces.support.errors import Kind, UserError, cause_fields, reason_of
from search_spaces.support.progress import status_if_slow
from tasks.language.data import LanguageSplits
from tasks.language.hub import go_offline_if_unreachable
from tasks.language.task import LanguageTask

_FEWSHOT_SEED = 1234
"""Seed with which lm-eval draws few-shot examples."""

_BOOTSTRAP_ITERS = 1000
"""Bootstrap samples for standard errors of metrics that are no means."""

_LOGITS = 2**26
"""Approximate number of logits in memory at once."""

_LENGTH = 200
"""Most characters quoted from another library's error."""


def row_of(origin: CheckpointSource, store: Store) -> tuple[str, Row]:
    """Return the study and the Row of a trained network. Raises UserError if the store has none."""
    record = read_record(origin.folder)
    job = EvaluationJob(
        task=origin.reference,
        architecture=record.architecture,
        preset=origin.preset,
        settings=tuple(origin.settings.items()),
        seed=int(record.settings.get("seed", 0)),
        data=origin.data,
    )
    entry = store.find_complete(str(record.settings.get("identity") or identity(job)))
    if entry is None:
        message = f"{store.url} has no row of checkpoint {origin.folder}. Give the --storage it was trained with."
        raise UserError("missing-rows", message, option="--storage", path=str(origin.folder))
    return entry


def decoder_of(origin: CheckpointSource) -> tuple[LanguageTask, nn.Module]:
    """Return a checkpoint's task and its network on the device. Raises UserError for other tasks or damaged files."""
    if not isinstance(origin.task, LanguageTask):
        message = f"`nas downstream` evaluates decoders, got {origin.folder} of task {origin.task.name!r}."
        raise UserError("unsupported", message, path=str(origin.folder), task=origin.task.name)
    network = read_if_saved(origin.folder, origin.task)
    if network is None:
        message = f"the network in {origin.folder} cannot be read. Train it again."
        raise UserError("bad-file", message, path=str(origin.folder))
    return origin.task, network.to(available_device())


def evaluate_tasks(
    task: LanguageTask, network: nn.Module, names: Sequence[str], include: Path | None, examples: int | None
) -> dict[str, float]:
    """Return the scores of lm-eval as `<task>_<metric>` and `<task>_<metric>_se`, and `<task>_examples`.

    Raises:
        UserError: lm-eval is not installed, does not know a task, or cannot get its data.
    """
    with status_if_slow("loading lm-eval ..."):
        manager, evaluate = _lm_eval(names, include)
        from tasks.language.scoring import ScoredDecoder

    for name in names:
        if name not in manager.all_tasks:
            near = get_close_matches(name, manager.all_tasks, n=1, cutoff=0.5)
            remedy = f"Did you mean {near[0]!r}?" if near else "`lm-eval ls tasks` lists them."
            message = f"no lm-eval task named {name!r}. {remedy}"
            nearest = near[0] if near else None
            raise UserError("unknown-name", message, option="--tasks", value=name, nearest=nearest)
    splits = task.splits
    assert isinstance(splits, LanguageSplits)
    model = ScoredDecoder(network, splits.tokenizer, task.context, max(1, _LOGITS // (task.context * task.vocabulary)))
    try:
        with status_if_slow(f"reading {', '.join(names)} ..."):
            task_dict = manager.load(list(names))
        for eval_task in task_dict["tasks"].values():  # as the lm-eval command does
            if eval_task.get_config("num_fewshot") is None:
                eval_task.set_config(key="num_fewshot", value=0)
            eval_task.set_fewshot_seed(seed=_FEWSHOT_SEED)
        results = evaluate(
            lm=model, task_dict=task_dict, limit=examples, log_samples=False, bootstrap_iters=_BOOTSTRAP_ITERS
        )
    except UserError:
        raise
    except ConnectionError as error:
        raise UserError(
            "unavailable",
            f"the data of {', '.join(names)} are not cached, and the hub is unreachable: {error!s:.{_LENGTH}}. "
            f"Connect to the hub, or give your own tasks with --include FOLDER.",
            tasks=tuple(names),
            **cause_fields(error),
        ) from error
    except Exception as error:  # errors of a task's file or its data
        message = f"lm-eval cannot evaluate {', '.join(names)}: {reason_of(error):.{_LENGTH}}"
        raise UserError("failed", message, tasks=tuple(names), **cause_fields(error)) from error
    return columns(results["results"]) | {
        f"{name}_examples": counts["effective"] for name, counts in results["n-samples"].items()
    }


def columns(results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return lm-eval's results by column: `acc_stderr,none` of task t is `t_acc_se`."""
    scores = {}
    for task, values in results.items():
        for key, value in values.items():
            metric, _, filter_name = key.partition(",")
            if isinstance(value, int | float) and metric not in ("alias", "sample_len"):
                name = "_".join((task, metric, *([filter_name] if filter_name not in ("", "none") else [])))
                name = name.replace("_stderr", "") + "_se" if "_stderr" in name else name
                scores[re.sub(r"\W", "_", name)] = float(value)
    return scores


def with_columns(row: Row, scores: Mapping[str, float]) -> Row:
    """Return the Row with these scores; an old standard error of a replaced score is removed."""
    rest = {name: value for name, value in row.extra_metrics.items() if name.removesuffix("_se") not in scores}
    return replace(row, extra_metrics={**rest, **scores})


def _lm_eval(names: Sequence[str], include: Path | None) -> tuple[Any, Any]:
    """Return lm-eval's task manager and its `evaluate`."""
    try:
        from datasets import disable_progress_bars
        from lm_eval import evaluate
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise UserError(
            "needs-extra",
            f'`nas downstream` needs lm-eval ({error}). Install the extra "downstream": pip install ".[downstream]".',
            extra="downstream",
        ) from error
    for name in ("lm_eval", "datasets"):
        logging.getLogger(name).setLevel(logging.ERROR)
    disable_progress_bars()
    os.environ.setdefault("DISABLE_MULTIPROC", "1")  # lm-eval would fork this process to resample, and print that
    go_offline_if_unreachable()
    if include is not None and not include.is_dir():
        message = f"--include must be a folder of lm-eval task files, got {str(include)!r}."
        kind: Kind = "bad-file" if include.exists() else "missing-file"
        raise UserError(kind, message, option="--include", path=str(include))
    if include is not None:
        manager = TaskManager(include_path=str(include), include_defaults=False)  # lm-eval's own tasks take seconds
        if set(names) <= set(manager.all_tasks):
            return manager, evaluate
    return TaskManager(include_path=None if include is None else str(include)), evaluate
