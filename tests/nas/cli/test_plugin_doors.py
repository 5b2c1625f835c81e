"""Another package adds a topology, a task, operators to count, and samplers by entry points."""

import tomllib
import warnings
from pathlib import Path
from typing import Any

import optuna
import pytest

from expect import check, raises, warns
from grouped import grouped
from nas.budget.bounds import Feasible
from nas.cli.lists import read_lists
from nas.cli.options import ListKind
from nas.costs.count import Miscount, count, count_macs
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.registry import SAMPLERS
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import joint, topology
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import Kind
from search_spaces.support.registry import Registry
from search_spaces.testing.contract import check_topology
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.load import load_task
from tasks.registry import TASKS

PACKAGE = Path(__file__).parents[2] / "plugin_package"
BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)


@pytest.fixture(autouse=True)
def _plugin_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the package on the path as if pip had installed it, and read all registries anew."""
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
            entries = Registry(registry.group, registry.kind)._entries
        monkeypatch.setitem(vars(registry), "_entries", entries)


def test_spaces_hold_an_installed_topology_and_skip_a_broken_one() -> None:
    with grouped() as case:
        for space_of in (joint, topology):
            with case(space_of.__name__):
                with warns("skipped", topology="broken-wiring") as notices:
                    space = space_of(BASE)
                (notice,) = [notice for notice in notices if notice.fields.get("topology") == "broken-wiring"]
                assert "stripes/broken.py, line 3" in str(notice)
                names = space.axes["topology"]
                assert "broken-wiring" not in names
                assert {"recall", "recall(layers=2)"} <= {notice.topology for notice in space.architectures}
                assert list(names) == ["resnet", *sorted(set(names) - {"resnet"})]


def test_installed_names_do_not_replace_ours() -> None:
    assert TOPOLOGIES.load("resnet").__name__ == "ResNet"
    assert load_task("digits-vit").name == "digits-vit"


@pytest.mark.parametrize("text", ["recall(layers=2)", pytest.param("recall", marks=pytest.mark.slow)])
def test_installed_topology_with_its_own_operator_keeps_the_contract(text: str) -> None:
    check_topology(text, count_macs=lambda network, inputs: count_macs(network, inputs)[0])


def test_network_with_an_installed_topology_is_counted_exactly() -> None:
    task = load_task("digits-vit")
    plain, recall = (count(task, Architecture(depth=3, width=24, heads=3, head_dim=8, hidden=20, topology=text))
                        for text in ("resnet", "recall(layers=2)"))  # fmt: skip
    layers, tokens = 6, 17
    assert recall.macs - plain.macs == layers * tokens * 2 * (4 * 24 * (24 + 24))
    assert recall.topology_params == 2 * 4 * (24 * 24 + 24 * 24 + 24 + 24)


def test_operator_without_a_handler_is_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TOPOLOGIES.load("recall"), "handlers", {})
    recall = Architecture(depth=1, width=24, heads=3, head_dim=8, hidden=20, topology="recall")
    with pytest.raises(Miscount) as error:
        count(load_task("digits-vit"), recall)
    check(error.value, "unsupported", operators=("aten::lstm",))
    assert 'handlers = {"aten::lstm": ' in str(error.value)
    with pytest.raises(Miscount) as error:
        count(load_task("untaught-waves"), load_task("waves").base)
    check(error.value, "unsupported", operators=("aten::fft_irfft", "aten::fft_rfft"))


def test_operators_of_a_task_are_counted_by_its_handlers() -> None:
    task = load_task("waves")
    assert count(task, task.base).macs == 16 + 2 * 16 * 4 + 16 * 2


def test_wrong_handlers_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task("waves")
    inverse = {"aten::fft_irfft": None}
    wrong: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"aten::linear": lambda inputs, outputs: 1}, {"operator": "aten::linear", "owner": "task 'waves'"}),
        ({"aten::matmul": None}, {"operator": "aten::matmul", "option": "handlers"}),
        ({"aten::softmax": lambda inputs, outputs: 1}, {"operator": "aten::softmax", "option": "handlers"}),
        ({"aten::fft_rfft": lambda inputs, outputs: 1.5, **inverse}, {"operator": "aten::fft_rfft", "value": 1.5}),
        ({"aten::fft_rfft": lambda inputs, outputs: -1, **inverse}, {"operator": "aten::fft_rfft", "value": -1}),
    ]
    with grouped() as case:
        for handlers, fields in wrong:
            with case(str(fields)), raises("bad-plugin", **fields):
                monkeypatch.setattr(type(task), "handlers", handlers)
                count(task, task.base)
    monkeypatch.setattr(type(task), "handlers", {"aten::fft_rfft": lambda inputs, outputs: inputs[7], **inverse})
    with raises("bad-plugin", operator="aten::fft_rfft") as error:
        count(task, task.base)
    assert isinstance(error.value.__cause__, IndexError)
    assert f"{Path(__file__).name}, line " in str(error.value)


def test_different_handlers_of_one_operator_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task("digits-vit")
    architecture = Architecture(depth=1, width=24, heads=3, head_dim=8, hidden=20, topology="recall")
    same = TOPOLOGIES.load("recall").handlers["aten::lstm"]
    monkeypatch.setattr(type(task), "handlers", {"aten::lstm": same, "aten::softmax": None}, raising=False)
    expected = count(task, architecture).macs
    monkeypatch.setattr(type(task), "handlers", {"aten::lstm": None})
    with raises("conflict", operator="aten::lstm", owners=("topology Recall", "task 'digits-vit'")):
        count(task, architecture)
    monkeypatch.undo()
    assert expected > 0


SPACE = SearchSpace("s", BASE, {"depth": (1, 2, 4, 8), "heads": (1, 2, 4)})
ALL = Feasible(SPACE, tuple(SPACE))


def proposals(sampler: str, trials: int) -> list[Any]:
    budget = BudgetSampler(ALL, sampler)
    study = optuna.create_study(direction="minimize", sampler=budget)
    candidates = []
    for _ in range(trials):
        trial = study.ask()
        candidates.append(budget.propose(trial))
        study.tell(trial, float(candidates[-1].architecture.depth))
    return candidates


def test_installed_sampler_proposes_after_the_base() -> None:
    candidates = proposals("first", 12)
    assert candidates[1:] == [candidate for candidate in SPACE if candidate.architecture != BASE]


def test_installed_samplers_propose_every_member_once() -> None:
    for sampler in ("optunas-own", "stripes.doors:Reversed", "stripes.doors:First"):
        assert set(proposals(sampler, 12)) == set(SPACE), sampler


def test_search_tries_the_point_of_an_optuna_sampler() -> None:
    assert [candidate.architecture.depth for candidate in proposals("optunas-own", 4)[1:]] == [8, 8, 8]


WRONG: list[tuple[str, Kind, dict[str, Any], str]] = [
    ("stripes.doors:Failing", "bad-plugin", {"cause": "KeyError"}, "doors.py, line "),
    ("failing", "bad-plugin", {"cause": "KeyError"}, "doors.py, line "),
    ("stripes.doors:Stubborn", "bad-plugin", {"sampler": "stripes.doors:Stubborn"}, ""),
    ("stripes.doors:Demanding", "bad-plugin", {"cause": "TypeError"}, "temper"),
    ("stripes.doors:Recall", "bad-plugin", {"cause": "TypeError"}, ""),
    ("stripes.doors:RecallOptions", "bad-plugin", {"sampler": "stripes.doors:RecallOptions"}, ""),
    ("stripes.doors:fft_macs", "bad-plugin", {"cause": "TypeError"}, ""),
    ("stripes.doors:Frist", "unknown-name", {"value": "Frist", "nearest": "First"}, ""),
    ("stripes.broken:Sampler", "bad-plugin", {"cause": "ModuleNotFoundError"}, "broken.py, line 3"),
    ("no_such_package:Sampler", "bad-plugin", {"cause": "ModuleNotFoundError"}, ""),
]


def test_wrong_samplers_are_errors() -> None:
    with grouped() as case:
        for sampler, kind, fields, place in WRONG:
            with case(sampler):
                with raises(kind, **fields) as error:
                    proposals(sampler, 3)
                assert place in str(error.value)
                assert ("cause" in error.value.fields) == ("cause" in fields)


def test_lists_import_nothing_and_name_broken_plugins() -> None:
    tasks = dict(read_lists(ListKind.TASKS)[ListKind.TASKS])
    assert tasks["waves"]
    presets = dict(read_lists(ListKind.PRESETS)[ListKind.PRESETS])
    assert "stripes.broken:Broken" in presets["broken-stripes"]
    assert "waves smoke" in presets
