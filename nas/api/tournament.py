"""`nas.tournament`: compare samplers on a recorded table."""

from collections.abc import Mapping, Sequence

from nas.analysis.replay import ReplayTask
from nas.analysis.tournament import Tournament, run_searches, tournament_of, trials_for
from nas.budget.bounds import Feasible, parse_budget
from nas.budget.feasibility import feasible_candidates
from nas.budget.objectives import names_in, objective_directions
from nas.request.job import reload_task
from nas.request.text_checks import as_list, check_call
from nas.samplers.load_proposer import load_proposer
from nas.samplers.registry import SAMPLERS
from results.records.row import Direction
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.support.errors import UserError
from search_spaces.support.progress import Progress


def tournament(
    table: str,
    *,
    samplers: str | Sequence[str] | None = None,
    seeds: int = 20,
    trials: int | None = None,
    objectives: str | Sequence[str] | None = None,
    budget: str | Sequence[str] = (),
) -> Tournament:
    """Compare samplers on TABLE, replay:NAME or replay:FILE.jsonl; nothing is trained.

    Each sampler searches once with each of the seeds 0, 1, 2 ... The score of a search is the hypervolume of its front
    on test, as a fraction of the whole table's. It is computed after 10, 25, 50, 75 and 100 % of the trials.

    Raises:
        UserError: No such table, an unknown sampler, or nothing within the budget.
    """
    check_call(seeds=seeds, trials=trials)
    names = SAMPLERS.names() if samplers is None else names_in(samplers)
    _check(names, seeds)
    task = reload_task(table, None)
    if not isinstance(task, ReplayTask):
        message = f"TABLE must be recorded trainings, replay:NAME or replay:FILE.jsonl, got {table!r}."
        raise UserError("unsupported", message, option="TABLE", value=table)
    metrics = dict(task.table.directions)
    directions = objective_directions(
        [next(iter(metrics)), "flops"] if objectives is None else names_in(objectives), metrics
    )
    members = feasible_candidates(task.fixed_space(), task, parse_budget(as_list(budget)))
    assert isinstance(members, Feasible)  # a table's space is enumerated
    benchmark = task.table.subset([candidate.architecture for candidate in members])
    number = trials_for(benchmark, trials)
    shares: dict[str, list[list[float]]] = {name: [] for name in names}
    with Progress(f"{task.name}: searches of {number} trainings", len(names) * seeds) as progress:
        for name, front_shares in run_searches(benchmark, members, directions, names, seeds, number):
            shares[name].append(front_shares)
            progress.advance(name)
    return tournament_of(_title(task.name, benchmark, directions, seeds), shares, number)


def _check(samplers: Sequence[str], seeds: int) -> None:
    if not samplers or not seeds:
        arguments = f"--samplers {','.join(samplers)} --seeds {seeds}"
        message = f"a tournament needs at least one sampler and one seed, got {arguments}."
        if not samplers:
            raise UserError("missing-value", message, option="--samplers")
        raise UserError("out-of-range", message, option="--seeds", value=seeds, least=1)
    if twice := [name for name in samplers if samplers.count(name) > 1]:
        message = f"sampler {twice[0]!r} is given twice. Leave one out."
        raise UserError("duplicate", message, option="--samplers", value=twice[0])
    for name in samplers:
        load_proposer(name)  # raises if there is no such sampler


def _title(name: str, benchmark: TabularBenchmark, directions: Mapping[str, Direction], seeds: int) -> str:
    there = f"{len(benchmark.architectures)} architectures, {len(benchmark)} trainings"
    objectives = ", ".join(f"{way} {metric}" for metric, way in directions.items())
    return f"{name}: {there} ({objectives}), {seeds} search{'' if seeds == 1 else 'es'} each"
