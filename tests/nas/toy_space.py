"""A small space, budgets in it, and studies with samplers; nothing is trained."""

import optuna

from nas.budget.bounds import Feasible, feasible, parse_budget
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.registry import SAMPLERS
from nas.store.optuna_study import set_training_length
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate, SearchSpace

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
SPACE = SearchSpace(
    "small",
    BASE,
    {
        "depth": (1, 2, 3, 4, 6, 8),
        "heads": (1, 2, 4),
        "head_dim": (2, 4, 8, 16),
        "topology": ("resnet", "dca", "ancre"),
        "dca.k": (1, 2, 4),
        "ancre.temperature": (0.01, 0.1, 1.0),
    },
)
QUICK = sorted(set(SAMPLERS.names()) - {"gp"})  # gp takes a second for each proposal; it has a test of its own
ONCE = [name for name in QUICK if name != "surrogate"]  # it may propose another seed of a candidate


def params(architecture: Architecture) -> int:
    return architecture.depth * (architecture.heads * architecture.head_dim + 1)


def within(budget: str) -> Feasible:
    return feasible(SPACE, lambda architecture: {"params": params(architecture)}, parse_budget([budget]))


BAND = within("24<=params<=30")
ALL = within("")


def measure(architecture: Architecture) -> tuple[float, float]:
    """A score to maximize and a cost to minimize."""
    bonus = {"resnet": 0.0, "dca(k=2)": 0.2}.get(architecture.topology, 0.1)
    return architecture.depth**0.5 + 0.1 * architecture.heads + bonus, float(params(architecture))


def study_with(sampler: BudgetSampler, storage: str | optuna.storages.BaseStorage | None = None) -> optuna.Study:
    return optuna.create_study(
        directions=["maximize", "minimize"], sampler=sampler, storage=storage, study_name="s", load_if_exists=True
    )


def rung_study(*, steps: int | None = 100) -> optuna.Study:
    """A study whose trainings have this length, or one that does not know it."""
    study = optuna.create_study(directions=["maximize", "minimize"], storage="sqlite://")
    if steps is not None:
        set_training_length(study, steps)
    return study


def search(study: optuna.Study, sampler: BudgetSampler, trials: int) -> list[Candidate]:
    proposals = []
    for _ in range(trials):
        trial = study.ask()
        proposals.append(sampler.propose(trial))
        study.tell(trial, measure(proposals[-1].architecture))
    return proposals
