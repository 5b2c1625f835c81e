"""The condition that --where and --budget put on rows."""

from collections.abc import Sequence

from nas.budget.bounds import parse_budget


def condition_of(column_names: Sequence[str], where: str | None, budget: Sequence[str]) -> str | None:
    """Return the SQL condition of --where and --budget; None without both.

    Raises:
        UserError: `where` is no complete condition, or an invalid budget.
    """
    if where is not None and budget:
        from results.query.condition import columns_in

        columns_in(where, column_names)  # checked alone: its brackets might close ours

    bounds = [
        f"{name} {sign} {limit}"
        for name, bound in parse_budget(budget).bounds.items()
        for sign, limit in ((">=", bound.low), ("<=", bound.high))
        if 0 < limit < float("inf")
    ]
    return " and ".join([*([f"({where})"] if where is not None else []), *bounds]) or None
