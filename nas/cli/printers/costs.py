"""Printers of counted and measured costs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.costs.profile.trace import operators
from nas.report import tables
from nas.report.format import Format


def print_costs(records: Sequence[dict[str, Any]], format: Format = Format.TABLE) -> None:
    """Print one record of counts, or one for each layer or operator."""
    if not tables.is_for_terminal(format):
        _write(records, format)
    elif "key" in records[0]:
        tables.print_record(tables.make_console(), records[0])
    else:
        sums = (f"{sum(record[name] for record in records):,} {name}" for name in ("params", "macs", "flops"))
        tables.print_records(tables.make_console(), records, list(records[0]), ", ".join(sums), format)


def print_profile(record: Mapping[str, Any], format: Format = Format.TABLE) -> None:
    """Print the measured costs, and the slowest operators of the trace."""
    if not tables.is_for_terminal(format):
        _write([record], format)
        return
    console = tables.make_console()
    tables.print_record(console, record)
    if "trace" not in record:
        return  # the record's note gives the reason
    trace = Path(str(record["trace"]))
    try:
        slowest = operators(trace, tables.MAX_OPERATORS)
    except ValueError:
        return  # the record's note gives the reason
    tables.print_records(console, slowest, list(slowest[0]), f"the {len(slowest)} slowest operators of 3 steps")
    tables.print_line(console, f"open {trace} in https://ui.perfetto.dev, or: tensorboard --logdir {trace.parent}")


def _write(records: Sequence[Mapping[str, Any]], format: Format) -> None:
    from nas.report.record_files import write_records  # loading pyarrow takes as long as the rest of `nas cost`

    write_records(records, format)
