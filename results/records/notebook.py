"""HTML of results in notebooks: a title, a table, a picture, notes. All text is escaped."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = "text-align:left;white-space:nowrap"


def title_html(title: str) -> str:
    """Return a title in bold."""
    return f"<p><strong>{escape(title)}</strong></p>"


def table_html(columns: Mapping[str, Sequence[str]]) -> str:
    """Return a table of texts, one column for each heading; a wide one can be scrolled."""
    heads = "".join(f'<th style="{_STYLE}">{escape(name)}</th>' for name in columns)
    lines = "".join(
        f"<tr>{''.join(f'<td style={_STYLE!r}>{escape(text)}</td>' for text in line)}</tr>"
        for line in zip(*columns.values(), strict=True)
    )
    return f'<div style="overflow-x:auto"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


def pairs_html(pairs: Mapping[str, str]) -> str:
    """Return a table of one line for each name."""
    lines = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in pairs.items())
    return f"<table>{''.join(lines)}</table>"


def notes_html(notes: Iterable[str]) -> str:
    """Return small lines below a table."""
    return "".join(f'<p style="margin:0"><small>{escape(note)}</small></p>' for note in notes)


def figure_html(figure: "Figure", description: str) -> str:
    """Return a figure as an image inside the page; `description` is its alternative text."""
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    data = b64encode(stream.getvalue()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(description)}" style="max-width:100%">'
