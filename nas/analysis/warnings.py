"""What a search is told of its numbers before it begins, by an audit in its store."""

from collections.abc import Iterable, Mapping
from typing import Any

from nas.analysis.audit import REPORT_FRACTIONS, Audit, audit_for
from nas.samplers.rungs import NO_RUNGS, Rungs
from nas.store.search_config import SearchConfig
from nas.store.store import Store
from search_spaces.support.logger import LOGGER

MIN_RELIABILITY = 0.8
"""The reliability of one seed below which a search is told of it, its standard error taken off."""

MIN_PREDICTIVENESS = 0.5
"""How well early reports must order architectures, as a share of how well another seed does, to hold trainings by."""


def rungs_for(config: SearchConfig, store: Store) -> Rungs:
    """The rungs of a search, or none where an audit of its task doubts them; what the audit doubts is said."""
    rungs, audit = Rungs(**config.rungs), audit_for(config, store)
    if audit is None:
        return rungs
    early = early_report_warning(audit, config.objectives, rungs) if rungs.number else None
    for line in (unreliable_objective_warning(audit, config.objectives), early):
        if line is not None:
            LOGGER.info(line)
    return NO_RUNGS if early else rungs


def unreliable_objective_warning(audit: Audit, objectives: Iterable[str]) -> str | None:
    """That one seed does not measure an objective well, and which metric it measures better; None where it does."""
    records = {record["metric"]: record for record in audit.records}
    doubtful = [records[name] for name in objectives if name in records and _at_least(records[name]) < MIN_RELIABILITY]
    if not doubtful:
        return None
    best = next(iter(records.values()))
    text = f"by its audit, one seed measures {_describe_reliability(doubtful[0])}"
    better = f"; {_describe_reliability(best)}: see --objectives" if best is not doubtful[0] else ""
    return f"{text}{better}."


def early_report_warning(audit: Audit, objectives: Iterable[str], rungs: Rungs) -> str | None:
    """That reports at the first rung do not tell how a training ends; None where they do, or that is not known."""
    for record in audit.records:
        shares = [share for share in REPORT_FRACTIONS if f"tau_at_{share:.0%}" in record]
        if record["metric"] not in objectives or not shares:
            continue
        share = max((share for share in shares if share <= rungs.min_fraction), default=shares[0])
        early, seeds = record[f"tau_at_{share:.0%}"], record["tau_seeds"]
        if early <= MIN_PREDICTIVENESS * max(seeds, 0.0):
            return (
                f"by its audit, {record['metric']} after {share:.0%} of a training does not tell how it ends (Kendall's"
                f" tau {early:.2f}, between seeds {seeds:.2f}): no training is held at a rung. Raise --min-fraction."
            )
    return None


def _at_least(record: Mapping[str, Any]) -> float:
    """The reliability, with its standard error taken off."""
    return float(record["reliability"] - record["reliability_se"])


def _describe_reliability(record: Mapping[str, Any]) -> str:
    levels = f"{record['levels']} of {record['architectures']} architectures apart"
    reliability = f"{record['reliability']:.2f}±{record['reliability_se']:.2f}"
    return f"{record['metric']} with a reliability of {reliability} and tells {levels}"
