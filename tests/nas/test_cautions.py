"""What a search is told by an audit before it begins."""

import pytest

from nas.auditing import Audit
from nas.cautions import too_early, unreliable
from nas.early_stopping import Rungs
from toy_searches import TOYS, Search

pytestmark = pytest.mark.usefixtures("quiet")


def an_audit(**taus: float) -> Audit:
    return Audit("title", ({"metric": "accuracy", "tau_seeds": 0.8, **taus},), (), ())


def test_an_audit_may_say_that_early_reports_tell_nothing() -> None:
    rungs = Rungs(2, 0.3, 3)
    assert too_early(an_audit(**{"tau_at_25%": 0.5}), ["accuracy", "flops"], rungs) is None
    later = {"tau_at_10%": 0.1, "tau_at_25%": 0.5}
    assert too_early(an_audit(**later), ["accuracy"], rungs) is None  # the former is before the first rung
    assert too_early(an_audit(**{"tau_at_25%": 0.1}), ["accuracy"], Rungs(1, 0.1, 3)) is not None  # nothing was earlier
    assert too_early(an_audit(**{"tau_at_10%": 0.0, "tau_seeds": 0.0}), ["accuracy"], rungs) is not None
    assert too_early(an_audit(**{"tau_at_25%": 0.1}), ["flops"], rungs) is None
    said = too_early(an_audit(**{"tau_at_25%": 0.1}), ["accuracy", "flops"], rungs)
    assert said is not None
    assert said.startswith(
        "by its audit, accuracy after 25% of a training does not tell how it ends (Kendall's tau 0.10,"
    )
    assert too_early(an_audit(**{"tau_at_10%": 0.1}), ["accuracy"], Rungs(1, 0.02, 3)) is not None


def test_a_reliability_is_trusted_no_further_than_its_error() -> None:
    record = {"metric": "accuracy", "reliability": 0.9, "levels": 2, "architectures": 8}
    sure, unsure = (Audit("title", ({**record, "reliability_se": error},), (), ()) for error in (0.05, 0.2))
    assert unreliable(sure, ["accuracy", "flops"]) is None
    assert unreliable(unsure, ["accuracy"]) == (
        "by its audit, one seed measures accuracy with a reliability of 0.90±0.20 and tells 2 of 8 architectures apart."
    )
    assert unreliable(unsure, ["flops"]) is None


def test_where_early_reports_tell_nothing_nothing_is_held(
    search: Search, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = an_audit(reliability=0.9, reliability_se=0.05, **{"tau_at_10%": 0.1})
    monkeypatch.setattr("nas.searching.audit_for", lambda config, store: told)
    study = search(task=f"{TOYS}:Learning", rungs=2, grace=0.1, trials=6)
    assert {row.status for row in study.rows()} == {"complete"}
    assert "no training is held at a rung" in capsys.readouterr().err
