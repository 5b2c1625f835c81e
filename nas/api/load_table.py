"""`nas.load_table`: open a table of recorded Rows."""

from pathlib import Path

from results.stats.tabular_benchmark import TabularBenchmark, read_table


def load_table(name: str | Path) -> TabularBenchmark:
    """Open a shipped table by name, or a file of Rows (FILE.jsonl, FILE.jsonl.gz), as a tabular benchmark.

    Loads no torch.

    Raises:
        UserError: No such table or file, a line that is no Row, or Rows of different recipes.
    """
    return read_table(name)
