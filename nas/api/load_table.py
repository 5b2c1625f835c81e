"""`nas.load_table`: a table of recorded Rows, to ask it what a training came to."""

from pathlib import Path

from results.stats.tabular_benchmark import TabularBenchmark, read_table


def load_table(name: str | Path) -> TabularBenchmark:
    """Open a table by its name, or a file of Rows (FILE.jsonl, FILE.jsonl.gz), as a tabular benchmark.

    Loads no torch.

    Raises:
        UserError: There is no such table or file, a line of it is no Row, or its Rows are of different recipes.
    """

    return read_table(name)
