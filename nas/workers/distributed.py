"""Distributed training of one network by several processes of this machine, started as torchrun does."""

import os
import warnings
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from nas.evaluation.evaluate import evaluate, job_lock
from nas.request.job import EvaluationJob
from nas.workers.processes import hide_working_directory, prepare_process
from results.records.row import Row
from search_spaces.support.errors import UserError, show_notices


def evaluate_distributed(job: EvaluationJob, processes: int) -> Row:
    """Evaluate in `processes` processes, each with its own GPU if there are any; one process is this one.

    If one of them dies, they all end and so does this process. Its parent handles that as the death of an evaluation.

    Raises:
        UserError: As `nas.evaluation.evaluate.evaluate`.
    """
    with job_lock(job) as job:
        return evaluate(job) if processes == 1 else _launch(job, processes)


def _launch(job: EvaluationJob, processes: int) -> Row:
    try:
        with TemporaryDirectory() as notes, hide_working_directory():
            config = LaunchConfig(
                min_nodes=1,
                max_nodes=1,
                nproc_per_node=processes,
                run_id=uuid4().hex,
                rdzv_backend="c10d",
                rdzv_endpoint="localhost:0",
                max_restarts=0,
                monitor_interval=0.1,
                start_method="spawn",
                logs_specs=DefaultLogsSpecs(log_dir=notes),
            )
            results: dict[int, Any] = elastic_launch(config, _evaluate_rank)(job, os.getpid())
    except ChildFailedError:
        os._exit(1)
    if isinstance(results[0], UserError):
        raise results[0]
    row: Row = results[0]
    return row


def _evaluate_rank(job: EvaluationJob, parent: int) -> Row | UserError:
    """Evaluate in one rank; only rank 0 prints."""
    prepare_process(parent)
    show_notices()
    if os.environ["RANK"] != "0":
        warnings.simplefilter("ignore")
    try:
        return evaluate(job)
    except UserError as error:
        return error
