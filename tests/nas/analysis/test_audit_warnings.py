"""Warnings that an audit gives a search before it begins."""

import pytest

from nas.analysis.audit import Audit
from nas.analysis.audit_warnings import early_report_warning, unreliable_objective_warning
from nas.samplers.rungs import Rungs
from toy_searches import TOYS, Search

pytestmark = pytest.mark.usefixtures("quiet")


def an_audit(**taus: float) -> Audit:
    return Audit("title", ({"metric": "accuracy", "tau_seeds": 0.8, **taus},), (), ())


def test_early_reports_that_do_not_predict_the_end_give_a_warning() -> None:
    rungs = Rungs(2, 0.3, 3)
    assert early_report_warning(an_audit(**{"tau_at_25%": 0.5}), ["accuracy", "flops"], rungs) is None
    later = {"tau_at_10%": 0.1, "tau_at_25%": 0.5}
    assert early_report_warning(an_audit(**later), ["accuracy"], rungs) is None  # 10% is before the first rung
    only_later = an_audit(**{"tau_at_25%": 0.1})
    assert early_report_warning(only_later, ["accuracy"], Rungs(1, 0.1, 3)) is not None
    assert early_report_warning(an_audit(**{"tau_at_10%": 0.0, "tau_seeds": 0.0}), ["accuracy"], rungs) is not None
    assert early_report_warning(an_audit(**{"tau_at_25%": 0.1}), ["flops"], rungs) is None
    warning = early_report_warning(an_audit(**{"tau_at_25%": 0.1}), ["accuracy", "flops"], rungs)
    assert warning is not None
    assert all(token in warning for token in ("accuracy", "25%", "0.10", "0.80", "--min-fraction"))
    assert early_report_warning(an_audit(**{"tau_at_10%": 0.1}), ["accuracy"], Rungs(1, 0.02, 3)) is not None


def test_warning_depends_on_reliability_less_its_standard_error() -> None:
    record = {"metric": "accuracy", "reliability": 0.9, "levels": 2, "architectures": 8}
    sure, unsure = (Audit("title", ({**record, "reliability_se": error},), (), ()) for error in (0.05, 0.2))
    assert unreliable_objective_warning(sure, ["accuracy", "flops"]) is None
    warning = unreliable_objective_warning(unsure, ["accuracy"])
    assert warning is not None
    assert all(token in warning for token in ("accuracy", "0.90±0.20", "2 tiers", "8 architectures"))
    assert unreliable_objective_warning(unsure, ["flops"]) is None


def test_no_trial_is_stopped_early_if_early_reports_do_not_predict(
    search: Search, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = an_audit(reliability=0.9, reliability_se=0.05, **{"tau_at_10%": 0.1})
    arguments = {"task": f"{TOYS}:Learning", "rungs": Rungs(2, 0.1), "trials": 12, "space": "depth-heads"}
    assert "pruned" in {row.status for row in search(**arguments, study="unaudited").rows()}
    monkeypatch.setattr("nas.analysis.audit_warnings.audit_for", lambda config, store: audit)
    study = search(**arguments, study="audited")
    assert {row.status for row in study.rows()} == {"complete"}
    (warning,) = [line for line in capsys.readouterr().err.splitlines() if "--min-fraction" in line]
    assert "accuracy" in warning
