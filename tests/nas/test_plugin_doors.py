"""A package from somewhere else: its topology is searched, its operators are counted, its sampler proposes."""

import tomllib
import warnings
from pathlib import Path
from typing import Any

import optuna
import pytest

from nas.budget import Feasible
from nas.commands.listing import everything
from nas.counting import Miscount, count, count_macs
from nas.options import Kind
from nas.samplers import SAMPLERS
from nas.sampling import BudgetSampler
from search_spaces.architecture import Architecture
from search_spaces.catalog import joint, topology
from search_spaces.errors import Notice, UserError
from search_spaces.registry import Registry
from search_spaces.space import SearchSpace
from search_spaces.testing import check_topology
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.load import load_task
from tasks.registry import TASKS

PACKAGE = Path(__file__).parents[1] / "plugin_package"
BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package on the path with what pip would write beside it, and all registries read anew."""
    info = tmp_path / "stripes-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stripes\nVersion: 0.1\n")
    groups = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(PACKAGE))
    for registry in (TOPOLOGIES, SAMPLERS, TASKS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fresh = Registry(registry.group, registry.kind)._entries
        monkeypatch.setitem(vars(registry), "_entries", fresh)


@pytest.mark.parametrize("space_of", [joint, topology])
def test_an_installed_topology_is_in_the_spaces_with_its_axes_and_a_broken_one_is_passed_over(space_of: Any) -> None:
    with pytest.warns(Notice) as caught:
        space = space_of(BASE)
    (said,) = [str(notice.message) for notice in caught if "broken-wiring" in str(notice.message)]
    assert said.startswith("passed over: topology 'broken-wiring' (stripes.broken:Wiring) could not be imported: ")
    assert said.endswith("stripes/broken.py, line 3)")
    names = space.axes["topology"]
    assert "broken-wiring" not in names
    assert {"recall", "recall(layers=2)"} <= {architecture.topology for architecture in space.architectures}
    assert list(names) == ["resnet", *sorted(set(names) - {"resnet"})]


def test_names_of_ours_stay_ours() -> None:
    assert TOPOLOGIES.load("resnet").__name__ == "ResNet"
    assert load_task("digits-vit").name == "digits-vit"


@pytest.mark.parametrize("text", ["recall", "recall(layers=2)"])
def test_its_topology_keeps_the_contract_with_an_operator_that_it_teaches(text: str) -> None:
    check_topology(text, count_macs=lambda network, inputs: count_macs(network, inputs)[0])


def test_a_network_with_its_topology_is_counted_to_the_last_unit() -> None:
    task = load_task("digits-vit")
    plain, recalling = (count(task, Architecture(depth=3, width=24, heads=3, head_dim=8, hidden=20, topology=text))
                        for text in ("resnet", "recall(layers=2)"))  # fmt: skip
    layers, tokens = 6, 17
    assert recalling.macs - plain.macs == layers * tokens * 2 * (4 * 24 * (24 + 24))
    assert recalling.topology_params == 2 * 4 * (24 * 24 + 24 * 24 + 24 + 24)


def test_an_operator_that_nobody_was_taught_is_an_error_that_says_how_to_teach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TOPOLOGIES.load("recall"), "handlers", {})
    with pytest.raises(Miscount) as caught:
        count(
            load_task("digits-vit"), Architecture(depth=1, width=24, heads=3, head_dim=8, hidden=20, topology="recall")
        )
    assert "nobody counts aten::lstm. Teach it in `handlers` of the topology or task" in str(caught.value)
    assert 'handlers = {"aten::lstm": ' in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(Miscount, match="nobody counts aten::fft_irfft, aten::fft_rfft"):
        count(load_task("untaught-waves"), load_task("waves").base)


def test_a_task_teaches_its_operators() -> None:
    task = load_task("waves")
    assert count(task, task.base).macs == 16 + 2 * 16 * 4 + 16 * 2


@pytest.mark.parametrize(
    ("handlers", "says"),
    [
        (
            {"aten::linear": lambda inputs, outputs: 1},
            "task 'waves' must not count aten::linear, which is counted here",
        ),
        ({"aten::matmul": None}, "must not count aten::matmul"),
        ({"aten::softmax": lambda inputs, outputs: 1}, "must not count aten::softmax"),
        (
            {"aten::fft_rfft": lambda inputs, outputs: inputs[7], "aten::fft_irfft": None},
            r"failed: IndexError.*line \d",
        ),
        ({"aten::fft_rfft": lambda inputs, outputs: 1.5, "aten::fft_irfft": None}, "must give an integer .* got 1.5"),
        ({"aten::fft_rfft": lambda inputs, outputs: -1, "aten::fft_irfft": None}, "must give an integer .* got -1"),
    ],
)
def test_what_a_handler_may_not_do_is_refused(handlers: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task("waves")
    monkeypatch.setattr(type(task), "handlers", handlers)
    with pytest.raises(UserError, match=says):
        count(task, task.base)


def test_a_task_and_a_topology_that_count_one_operator_in_two_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task("digits-vit")
    architecture = Architecture(depth=1, width=24, heads=3, head_dim=8, hidden=20, topology="recall")
    same = TOPOLOGIES.load("recall").handlers["aten::lstm"]
    monkeypatch.setattr(type(task), "handlers", {"aten::lstm": same, "aten::softmax": None}, raising=False)
    expected = count(task, architecture).macs
    monkeypatch.setattr(type(task), "handlers", {"aten::lstm": None})
    with pytest.raises(UserError, match="topology Recall and task 'digits-vit' count aten::lstm in two ways"):
        count(task, architecture)
    monkeypatch.undo()
    assert expected > 0


SPACE = SearchSpace("s", BASE, {"depth": (1, 2, 4, 8), "heads": (1, 2, 4)})
ALL = Feasible(SPACE, tuple(SPACE))


def proposals(sampler: str, trials: int) -> list[Any]:
    budget = BudgetSampler(ALL, sampler)
    study = optuna.create_study(direction="minimize", sampler=budget)
    found = []
    for _ in range(trials):
        trial = study.ask()
        found.append(budget.propose(trial))
        study.tell(trial, float(found[-1].architecture.depth))
    return found


def test_its_sampler_proposes_after_the_base() -> None:
    found = proposals("first", 12)
    assert found[1:] == [candidate for candidate in SPACE if candidate.architecture != BASE]


@pytest.mark.parametrize("sampler", ["optunas-own", "stripes.doors:Reversed", "stripes.doors:First"])
def test_a_sampler_by_name_or_by_path_is_true_to_the_space(sampler: str) -> None:
    assert set(proposals(sampler, 12)) == set(SPACE)


def test_an_optuna_sampler_is_asked_what_it_draws_and_its_point_is_what_is_tried() -> None:
    assert [found.architecture.depth for found in proposals("optunas-own", 4)[1:]] == [8, 8, 8]


@pytest.mark.parametrize(
    ("sampler", "says"),
    [
        ("stripes.doors:Failing", r"'stripes.doors:Failing' failed: KeyError: 'nothing' \(.*doors.py, line \d+\)"),
        ("failing", r"'failing' failed: KeyError: 'nothing' \(.*doors.py, line \d+\)"),
        ("stripes.doors:Stubborn", "must propose one of the candidates that are untried or may have another seed, got"),
        ("stripes.doors:Demanding", "could not be constructed: TypeError: .*temper"),
        ("stripes.doors:Recall", "could not be constructed: TypeError"),
        ("stripes.doors:RecallOptions", "must be an Optuna sampler's class"),
        ("stripes.doors:fft_macs", "could not be constructed: TypeError"),
        ("stripes.doors:Frist", "unknown sampler 'Frist' of stripes.doors. Did you mean 'First'"),
        ("stripes.broken:Sampler", r"could not be imported: ModuleNotFoundError.*broken.py, line 3"),
        ("no_such_package:Sampler", "could not be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_no_sampler_is_a_mistake_that_says_why(sampler: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        proposals(sampler, 3)
    assert "\n" not in str(caught.value)


def test_what_is_listed_is_read_and_not_run_and_a_broken_task_is_named_with_its_presets() -> None:
    listed = dict(everything(Kind.TASKS)[Kind.TASKS])
    assert listed["waves"]
    presets = dict(everything(Kind.PRESETS)[Kind.PRESETS])
    assert presets["broken-stripes"].startswith("broken: task 'broken-stripes' (stripes.broken:Broken) could not be ")
    assert "waves smoke" in presets
