"""Audits: their rows, the architectures they choose, and the warnings they give a search."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nas
import nas.analysis.audit_warnings
from expect import raises
from grouped import grouped
from nas.analysis.audit import audit_for, audit_of, check_audit, rows_by_architecture, spread_by_cost, study_of
from nas.budget.bounds import parse_budget
from nas.budget.feasibility import feasible_candidates
from nas.costs.count import budget_counts
from nas.request.job import task_of
from nas.request.resolve import space_of
from nas.request.search_request import build_request
from nas.store.store import Store
from nas.workers.resources import Resources
from results.records.row import Row
from results.stats.reliability import components
from tasks.load import load_task
from toy_rows import LITTLE, a_row
from toy_searches import TOYS, Search

TASK = f"{TOYS}:Toy"


def audit_rows(architectures: int = 6, seeds: int = 3, **changes: Any) -> list[Row]:
    """Rows whose loss depends on the hidden width and the seed, and whose accuracy on the seed alone."""
    rows = []
    for number in range(architectures):
        for seed in range(seeds):
            noise = math.sin(7 * number + 3 * seed)
            metrics = {"accuracy": 0.5 + noise / 10, "loss": number + noise / 10}
            curve = tuple({"step": step, "metrics": {"loss": -number * (step < 40) + number}} for step in (5, 20, 45))
            rows.append(
                a_row(
                    architecture=LITTLE.with_fields({"hidden": 16 + number}),
                    seed=seed,
                    steps=100,
                    directions={"accuracy": "max", "loss": "min"},
                    metrics=metrics,
                    test={"loss": number + math.cos(5 * number + seed) / 10},
                    curve=curve,
                    provenance={"wall_s": 3.0},
                    **changes,
                )
            )
    return rows


def test_metrics_are_sorted_by_reliability() -> None:
    audit = audit_of("title", audit_rows(), {})
    assert [record["metric"] for record in audit.records] == ["loss", "accuracy"]
    loss, accuracy = audit.records
    assert loss["reliability"] > 0.95 > 0.5 > accuracy["reliability"]
    assert (loss["architectures"], loss["seeds"]) == (6, 3)
    assert (loss["tau_seeds"], loss["tau_test"]) == pytest.approx((1, 1))
    assert "tau_test" not in accuracy  # it is not measured on test
    assert "sd_examples" not in accuracy
    assert loss["tau_at_10%"] == 0.0  # all reported the same until then
    assert loss["tau_at_25%"] == 0.0
    assert loss["tau_at_50%"] == pytest.approx(1)
    groups = rows_by_architecture(audit_rows()).values()
    validation = np.array([[row.metrics["loss"] for row in rows] for rows in groups])
    test = np.array([[row.test["loss"] for row in rows] for rows in groups])
    assert loss["sd_architecture"] ** 2 == pytest.approx(components(validation, test).architecture)
    assert all(f"{name}_se" in loss for name in ("reliability", "sd_seed", "sd_examples", "tau_seeds", "tau_test"))
    json.dumps(audit.records)
    assert len(audit.to_pandas()) == 2


def test_trainings_in_hours_have_no_agreement_of_reports() -> None:
    records = audit_of("title", audit_rows(recipe={"hours": 0.5}), {}).records
    assert not [name for record in records for name in record if name.startswith("tau_at")]


def test_levels_need_seeds_and_their_training_time() -> None:
    resolutions = audit_of("title", audit_rows(), {}).resolutions
    assert [record["levels"] for record in resolutions] == [2, 3, 4, 5, 6]
    resolvable = [record for record in resolutions if record["seeds"] is not None]
    assert resolvable
    assert all(record["seconds_each"] == 3.0 * record["seeds"] for record in resolvable)


def test_an_architecture_needs_all_its_seeds() -> None:
    rows = audit_rows()
    failures = [
        a_row(architecture=row.architecture, seed=row.seed, status="failed", error="it broke") for row in rows[:1]
    ]
    assert len(rows_by_architecture(failures + rows[1:])) == 5
    assert [row.seed for row in next(iter(rows_by_architecture(rows).values()))] == [0, 1, 2]
    with raises("missing-rows", architectures=3, least=4) as error:
        audit_of("title", failures + rows[1:12], {})
    assert "it broke" in str(error.value)


def test_further_seeds_of_some_architectures_change_nothing() -> None:
    extra = [a_row(architecture=row.architecture, seed=3, metrics=row.metrics) for row in audit_rows()[:3:3]]
    failures = [a_row(architecture=LITTLE, seed=9, status="failed", error="it broke")]
    assert rows_by_architecture(audit_rows() + extra + failures) == rows_by_architecture(audit_rows())
    assert len(rows_by_architecture(audit_rows(seeds=2) + [row for row in audit_rows(4) if row.seed == 2])) == 4
    assert {len(rows) for rows in rows_by_architecture(audit_rows(9, 1) + audit_rows(4, 2)).values()} == {2}


def test_a_metric_that_another_preset_lacks_has_no_agreement() -> None:
    smoke_rows = [
        a_row(architecture=row.architecture, seed=row.seed, metrics={"accuracy": 0.5}) for row in audit_rows()
    ]
    assert "tau_smoke" not in audit_of("title", audit_rows(), {"smoke": smoke_rows}).records[0]


def test_a_search_uses_only_audits_of_its_own_budget_and_version(
    search_args: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    little = {"architectures": 6, "seeds": 2, "resources": Resources(1), "storage": search_args["storage"]}
    nas.audit(TASK, preset="smoke", **little)
    store = Store(search_args["storage"])
    arguments = {"preset": "smoke", "settings": "", "seed": 0, "sampler": "random", "data": None}
    config = build_request(TASK, "joint", "", (), "", None, **arguments).config
    audit = audit_for(config, store)
    assert audit is not None
    assert audit.records[0]["architectures"] == 6
    assert audit_for(replace(config, budget="params<=1"), store) is None
    monkeypatch.setattr(type(task_of(config.task, config.data)), "version", 99)
    assert audit_for(config, store) is None


def test_spread_by_cost_can_choose_every_member_once() -> None:
    task = load_task(TASK)
    members = feasible_candidates(space_of(task, "joint", "", "smoke"), task, parse_budget([]))
    archs = {candidate.architecture for candidate in members.candidates}
    number = min(600, len(archs))
    architectures = spread_by_cost(task, members, number)
    assert len({*architectures}) == number
    costs = sorted(budget_counts(task, architecture)["flops"] for architecture in archs)
    assert (budget_counts(task, architectures[0])["flops"], budget_counts(task, architectures[-1])["flops"]) == (
        costs[-1],
        costs[0],
    )
    few = feasible_candidates(space_of(task, "depth-heads", "", "smoke"), task, parse_budget([]))
    with raises("infeasible", option="--architectures", value=500, most=len(few)):
        spread_by_cost(task, few, 500)


def test_agreement_with_other_presets() -> None:
    opposite_rows = [
        a_row(architecture=row.architecture, seed=row.seed, metrics={"loss": -row.metrics["loss"], "accuracy": 0.5})
        for row in audit_rows()
    ]
    loss, _ = audit_of("title", audit_rows(), {"smoke": opposite_rows, "little": opposite_rows[:9]}).records
    assert loss["tau_smoke"] == pytest.approx(-1)
    assert "tau_little" not in loss  # three architectures are too few


def test_chosen_architectures_are_spread_evenly_by_cost() -> None:
    task = load_task("digits-vit")
    with grouped() as case:
        for space, arch in (("depth-heads", ""), ("per-block", "depth=2")):
            with case(space):
                members = feasible_candidates(
                    space_of(task, space, arch, "smoke"), task, parse_budget(["params<=100k"])
                )
                architectures = spread_by_cost(task, members, 6)
                assert architectures == spread_by_cost(task, members, 6)
                assert len(set(architectures)) == 6
                costs = np.log([budget_counts(task, architecture)["flops"] for architecture in architectures])
                steps = np.diff(costs[::-1])  # the costliest comes first: else all wait for it at the end
                assert (steps > 0).all()
                assert steps.max() < 2.5 * steps.mean()


def test_an_audit_is_stored_and_warns_a_search(
    search: Search, search_args: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nas.analysis.audit_warnings, "MIN_RELIABILITY", 2.0)  # which no metric reaches
    little = {"architectures": 4, "seeds": 2, "resources": Resources(1), "storage": search_args["storage"]}
    little["budget"] = "params<=3k"
    audit = nas.audit(TASK, preset="smoke", **little)
    assert {row.status for row in audit.rows()} == {"complete"}
    assert nas.audit(TASK, preset="smoke", **little).rows() == audit.rows()  # nothing is trained twice
    assert nas.load(study_of("toy", "smoke"), storage=search_args["storage"]).rows() == audit.rows()
    proxy = nas.audit(TASK, preset="proxy", **little)
    assert proxy.records[0]["tau_smoke"] == pytest.approx(1)
    capsys.readouterr()
    search(trials=1, space="depth-heads")
    record = next(record for record in audit.records if record["metric"] == "accuracy")
    warning = f"{record['reliability']:.2f}±{record['reliability_se']:.2f}"
    assert warning in capsys.readouterr().err
    assert "±" not in capsys.readouterr().err
    search(trials=1, space="depth-heads", settings="penalty=0.02", study="third")
    assert "±" not in capsys.readouterr().err  # the audit was of another recipe


def test_mistakes_raise_user_errors(search_args: dict[str, Any]) -> None:
    def audit(**changes: Any) -> None:
        nas.audit(TASK, **{"preset": "smoke", "storage": search_args["storage"], **changes})

    with raises("out-of-range", option="--architectures", value=3, least=4):
        audit(architectures=3)
    with raises("wrong-type", option="--architectures", value="many"):
        check_audit("many", 2)  # type: ignore[arg-type]
    with raises("out-of-range", option="--seeds", value=1, least=2):
        audit(seeds=1)
    with raises("unknown-name", option="preset", value="thorough"):
        audit(preset="thorough")
    with raises("unknown-name", value="everything"):
        audit(space="everything")
