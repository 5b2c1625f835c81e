"""A study as one self-contained HTML file: it needs no network, folder or server.

Its content security policy allows two scripts, by their digests, and no requests. Names in rows are escaped as text.
"""

import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from nas.budget.objectives import COSTS
from nas.environment.passwords import without_passwords
from nas.report import tables
from nas.report.axes import axis_names, topology_of
from nas.report.colors import TopologyStyle, topology_styles
from nas.report.html import chart_records, charts
from nas.report.html.contents import ReportContents
from nas.report.html.wiring_charts import coefficient_map, depth_chart, heat_map
from results.records.cell_text import cell_text
from search_spaces.support.errors import Notice, cause_fields, printable
from search_spaces.support.files import atomic_write, unwritable
from search_spaces.support.progress import LOADING, status_if_slow

MAX_CURVES = 200
"""Most trainings whose curves are drawn; if there are more, only those of front contenders are."""

MAX_PARTS = 20
"""Most architectures whose costs are drawn by part."""

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """A section of the page: heading, description, charts by name, notes and subsections.

    If `topology` is set, the section is hidden together with that topology.
    """

    title: str
    description: str
    charts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    subsections: Sequence["Section"] = ()
    topology: str | None = None


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the value that it is sorted by."""

    text: str
    value: Any


def write_page(contents: ReportContents, path: Path, *, topologies: bool = False) -> None:
    """Write a study's report to a file, if `topologies` with the measured topologies of its best networks.

    Raises:
        UserError: The file cannot be written.
    """
    html = render_page(contents, topologies=topologies)
    try:
        atomic_write(path, html.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise unwritable(path, error, "--output") from error


def render_page(contents: ReportContents, *, topologies: bool = False) -> str:
    """Return the page as HTML. Only `topologies` loads torch; if none can be shown, a Notice gives the reason."""
    architectures = contents.architectures
    vega = _vega()
    scripts = [vega, (_HERE / "page.js").read_text()]
    topology_names = sorted({*map(topology_of, architectures)})
    look_by_topology = topology_styles([*topology_names, *(row.architecture.topology for row in contents.rows)])
    return _template().render(
        name=contents.name,
        trainings=len(contents.rows),
        title=contents.title,
        looks={name: look_by_topology[name] for name in topology_names},
        sections=[
            *_sections(contents, look_by_topology),
            *([_wirings(contents, look_by_topology)] if topologies else []),
        ],
        columns=_columns(contents),
        lines=[*_table_rows(contents)],
        failed=[row for row in contents.rows if row.error],
        origins=[*_provenance_pairs(contents)],
        policy=" ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704  # ours, and Vega's
        style=Markup((_HERE / "page.css").read_text()),  # noqa: S704
    )


@cache
def _vega() -> str:
    """Return Vega and vegaEmbed as one script; building it takes a second."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _template() -> Template:
    """Return the page's template, which escapes all strings that are not Markup."""
    pages = Environment(
        autoescape=True,
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,  # Markup stays as it is
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return pages.get_template("page.html")


def _sections(contents: ReportContents, look_by_topology: Mapping[str, TopologyStyle]) -> Iterator[Section]:
    rows, architectures, objectives = contents.rows, contents.architectures, contents.objectives
    across, up = axis_names(objectives)
    methods = contents.config.baselines if contents.config else {}
    baselines = {name: columns[up] for name, columns in methods.items() if up in columns}
    published = chart_records.published({row.task for row in rows}, across, up)
    front = charts.front(architectures, objectives, look_by_topology, baselines, published)
    better = "Lower is better." if objectives[up] == "min" else "Higher is better."
    papers = " Crosses are results that a paper prints for this task." if published else ""
    notes = [*tables.baseline_lines(methods), *tables.front_notes(architectures), *contents.notes]
    yield Section("Front", f"{_FRONT} {better}{papers}", {"front": front}, notes)
    shares = chart_records.hypervolumes(rows, architectures, objectives)
    if shares:
        yield Section("Hypervolume", _HYPERVOLUME, {"hypervolume": charts.hypervolume(shares, len(rows))})
    identities = {identity for architecture in tables.contenders(architectures) for identity in architecture.identities}
    points = chart_records.curves([r for r in rows if len(rows) <= MAX_CURVES or r.identity() in identities], up)
    if points:
        yield Section("Training curves", _CURVES, {"curves": charts.curves(points, up, look_by_topology)})
    surest = nsmallest(
        MAX_PARTS,
        tables.contenders(architectures),
        key=lambda architecture: chart_records.rank_key(architecture, objectives),
    )
    records = {
        whole: chart_records.cost_part_records(sorted(surest, key=architectures.index), whole)
        for whole in chart_records.PARTS
    }
    sums = {f"cost-{whole}": charts.cost_parts_chart(parts, whole) for whole, parts in records.items() if parts}
    if sums:
        yield Section("Costs by part", _COSTS.format(MAX_PARTS), sums)
    axis_charts = {
        f"axis-{name}": charts.axis(architectures, name, up, look_by_topology)
        for name in chart_records.axes_of(architectures)
    }
    if axis_charts:
        yield Section("Results by axis", _AXES, axis_charts)
    if across in COSTS and min(architecture.record[across] for architecture in architectures) > 0:
        differences = chart_records.at_equal_cost(architectures, across, up)
        if len({difference["topology"] for difference in differences}) > 1:
            chart = charts.equal_cost(differences, across, up, look_by_topology)
            description = f"{_EQUAL.format(across, chart_records.COST_FACTOR)} {better}"
            yield Section("Topologies at equal cost", description, {"equal-cost": chart})


def _wirings(contents: ReportContents, look_by_topology: Mapping[str, TopologyStyle]) -> Section:
    """Return the section with one subsection for each stack of the best networks."""
    with status_if_slow(LOADING):
        from nas.report.html.wirings import wirings_of

    wirings = wirings_of(contents.storage, contents.rows, contents.architectures, contents.objectives)
    if not wirings.networks:
        message = f"the report shows no topologies: {'; '.join(wirings.notes)}."
        cause = cause_fields(wirings.errors[0]) if wirings.errors else {}
        fields = {**cause, "option": "--topologies", "study": contents.name}
        warnings.warn(Notice("skipped", message, **fields), stacklevel=2)
    subsections = []
    for number, network in enumerate(wirings.networks):
        color = look_by_topology[network.topology].color
        charts = {
            f"wiring-{number}": heat_map(network.pairs, color),
            f"depth-{number}": depth_chart(network.depths, color),
        }
        for index, (name, weights) in enumerate(network.coefficients.items()):
            charts[f"weights-{number}-{index}"] = coefficient_map(name, weights, color)
        subsections.append(Section(network.title, network.description, charts, topology=network.topology))
    return Section("Topologies", _WIRINGS, {}, wirings.notes, subsections)


_FRONT = (
    "Each point is an architecture: its mean over seeds with its standard error. Hollow points have no held-out seeds. "
    "The line is the front of the posterior means, with its standard error."
)
_HYPERVOLUME = (
    "How fast the search converged: the share of the final hypervolume after each training, by the final posterior "
    "means. A lucky seed adds nothing."
)
_CURVES = "Each line is a training, measured on the validation split."
_COSTS = (
    "Up to {} architectures, those most likely on the front. Operations are those of one forward pass of one example."
)
_AXES = (
    "Each point is an architecture. Each bar is the mean and standard deviation of the architectures with that value. "
    "Their other values and costs differ too."
)
_EQUAL = (
    "Difference of each architecture to the mean of all others whose {} is equal within a factor of {}. Each bar is a "
    "topology's mean with its standard error."
)


_WIRINGS = (
    "How layers of the front's trained networks mix earlier outputs: a stronger cell is a larger share of that layer's "
    "or the head's input. The next chart shows the root mean square of each layer's input and output, and the gradient "
    "norm of the loss by that output. Layer 0 is the embedding. If inputs do not show the topology's own weights, "
    "these follow, without their input-dependent part: one row for each layer, block or state."
)


def _columns(contents: ReportContents) -> list[str]:
    columns = tables.summary_columns(contents.columns, contents.objectives)
    names = [name for name in columns if not name.endswith("_se")]
    records = [*map(tables.summary_record, contents.architectures)]
    return [name for name in dict.fromkeys(names) if any(record.get(name) not in (None, "") for record in records)]


def _table_rows(contents: ReportContents) -> Iterator[list[Cell]]:
    """Yield the table cells of each architecture."""
    names = _columns(contents)
    for architecture in contents.architectures:
        record = tables.summary_record(architecture)
        yield [Cell(cell_text(record, name), record.get(name)) for name in names]


def _provenance_pairs(contents: ReportContents) -> Iterator[tuple[str, str]]:
    """Yield what is needed to reproduce the study, and where it is stored."""
    yield "store", without_passwords(contents.storage)
    if contents.config is not None:
        for name in ("task", "space", "base", "budget", "preset", "seed", "sampler"):
            yield name, str(getattr(contents.config, name))
        yield "settings", ", ".join(f"{name}={value}" for name, value in contents.config.settings.items())
    yield from chart_records.provenance_pairs(contents.rows)
    yield "query", tables.results_command(contents.name, contents.storage)
