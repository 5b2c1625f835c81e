"""The result of `nas.show`: how strongly each reader of a network's stacks depends on each source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from nas.report.wiring.stack_wiring import StackWiring, coefficient_records, depth_records, matrix_records, pair_records
from results.records import table

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@final
@dataclass(frozen=True)
class WiringReport:
    """The measured topology of a network.

    Attributes:
        title: One line about what was measured.
        topology: The architecture's topology.
        stacks: One entry for each stack of the network.
    """

    title: str
    topology: str
    stacks: tuple[StackWiring, ...]

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """One flat record for each reader and each source that it can read.

        `layer` is the reader's number from 1, `source` that of the layer whose output is read, 0 for the network's
        input. `weight` is None if a topology works in head space, `gradient` (of the source) is None without a loss.
        """
        return [record for stack in self.stacks for record in pair_records(stack)]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the records as a data frame."""
        return table.from_records(self.records).to_pandas()

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw weights, shares, arcs and sizes over depth; save the figure if `path` is given.

        Raises:
            UserError: The file cannot be written.
        """
        from nas.report.plots import save_figure
        from nas.report.wiring.wiring_figure import draw  # Matplotlib takes half a second

        return save_figure(draw(self.title, self.topology, self.stacks), path)

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.title)}</p>"]
        for stack in self.stacks:
            parts += [_html(matrix_records(stack)), _html(depth_records(stack))]
            for name, coefficients in stack.coefficients.items():
                parts += [f"<p>{escape(name)}</p>", _html(coefficient_records(coefficients))]
        return "".join(parts)


def _html(records: Sequence[Mapping[str, Any]]) -> str:
    html: str = table.from_records(records).to_pandas().to_html(index=False, na_rep="")
    return html
