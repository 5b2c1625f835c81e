"""`nas.downstream`: evaluate a trained decoder on tasks of lm-eval."""

from collections.abc import Sequence
from pathlib import Path

from nas.analysis.lm_eval_tasks import decoder_of, evaluate_tasks, row_of, with_columns
from nas.budget.objectives import names_in
from nas.environment.paths import DEFAULT_STORE
from nas.evaluation.retrofit import origin_of
from nas.request.job import text_of
from nas.request.text_checks import check_call
from nas.store.store import Store
from results.records.row import Row


def downstream(
    checkpoint: str | Path,
    *,
    tasks: str | Sequence[str],
    include: str | Path | None = None,
    examples: int | None = None,
    task: str | None = None,
    data: str | Path | None = None,
    storage: str = DEFAULT_STORE,
) -> Row:
    """Evaluate the decoder of CHECKPOINT on tasks of lm-eval (extra `downstream`), and add the scores to its Row.

    Tasks must score given texts: lambada_openai, hellaswag, piqa, arc_easy, arc_challenge, winogrande, wikitext ...
    Their data come from the hub, or from files that a task in `include` names.

    Raises:
        UserError: A checkpoint that is no decoder, a Row that is not in the store, an unknown task, or missing data.
    """
    check_call(examples=examples, storage=storage)
    origin = origin_of(Path(checkpoint), task, None, text_of(data))
    study, row = row_of(origin, Store(storage))
    language_task, network = decoder_of(origin)
    scores = evaluate_tasks(
        language_task, network, names_in(tasks), None if include is None else Path(include), examples
    )
    return Store(storage, make=True).add(with_columns(row, scores), study)
