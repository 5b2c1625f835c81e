"""Warnings before a search, based on an audit in its store."""

from collections.abc import Iterable, Mapping
from typing import Any

from nas.analysis.audit import REPORT_FRACTIONS, Audit, audit_for
from nas.samplers.rungs import NO_RUNGS, Rungs
from nas.store.search_config import SearchConfig
from nas.store.store import Store
from search_spaces.support.logger import LOGGER

MIN_RELIABILITY = 0.8
"""A search warns if the reliability of one seed, minus its standard error, is below this."""

MIN_PREDICTIVENESS = 0.5
"""Least tau of early reports, as a fraction of the tau between seeds, for early stopping."""


def rungs_for(config: SearchConfig, store: Store) -> Rungs:
    """Return the rungs of a search, or none if an audit finds early reports useless; print the audit's warnings."""
    rungs, audit = Rungs(**config.rungs), audit_for(config, store)
    if audit is None:
        return rungs
    early = early_report_warning(audit, config.objectives, rungs) if rungs.number else None
    for line in (unreliable_objective_warning(audit, config.objectives), early):
        if line is not None:
            LOGGER.info(line)
    return NO_RUNGS if early else rungs


def unreliable_objective_warning(audit: Audit, objectives: Iterable[str]) -> str | None:
    """Return a warning that one seed measures an objective poorly, with a better metric if there is one; or None."""
    records = {record["metric"]: record for record in audit.records}
    doubtful = [records[name] for name in objectives if name in records and _at_least(records[name]) < MIN_RELIABILITY]
    if not doubtful:
        return None
    best = next(iter(records.values()))
    text = f"audit, with one seed: {_describe_reliability(doubtful[0])}"
    better = f"; {_describe_reliability(best)}; see --objectives" if best is not doubtful[0] else ""
    return f"{text}{better}."


def early_report_warning(audit: Audit, objectives: Iterable[str], rungs: Rungs) -> str | None:
    """Return a warning that reports at the first rung do not predict the end of a training, or None."""
    for record in audit.records:
        shares = [share for share in REPORT_FRACTIONS if f"tau_at_{share:.0%}" in record]
        if record["metric"] not in objectives or not shares:
            continue
        share = max((share for share in shares if share <= rungs.min_fraction), default=shares[0])
        early, seeds = record[f"tau_at_{share:.0%}"], record["tau_seeds"]
        if early <= MIN_PREDICTIVENESS * max(seeds, 0.0):
            return (
                f"audit: {record['metric']} after {share:.0%} of a training does not predict its end (Kendall's tau "
                f"{early:.2f}, between seeds {seeds:.2f}). Early stopping is off; raise --min-fraction to enable it."
            )
    return None


def _at_least(record: Mapping[str, Any]) -> float:
    """Return the reliability minus its standard error."""
    return float(record["reliability"] - record["reliability_se"])


def _describe_reliability(record: Mapping[str, Any]) -> str:
    levels = f"distinguishes {record['levels']} tiers among {record['architectures']} architectures"
    reliability = f"{record['reliability']:.2f}±{record['reliability_se']:.2f}"
    return f"{record['metric']} has reliability {reliability} and {levels}"
