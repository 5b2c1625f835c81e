"""Commands that read the rows of studies, files and shipped tables. They load no torch."""

import nas
from nas.cli import options, printers
from nas.cli.command import Group, command
from nas.environment.paths import DEFAULT_STORE
from nas.report.format import Format, format_for


@command("results", Group.START)
def results(
    study: options.StudiesOption = None,
    storage: options.Storage = DEFAULT_STORE,
    source: options.Source = [],
    where: options.Where = None,
    budget: options.Budget = [],
    pareto: options.Pareto = None,
    knee: options.Knee = False,
    best: options.Best = None,
    by: options.GroupBy = None,
    sql: options.SQL = None,
    columns: options.Columns = None,
    order_by: options.OrderBy = None,
    limit: options.Limit = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Query the rows of studies, files or shipped tables; by default those of the newest search.

    --where and --budget filter rows. Then print these, or one of: the Pareto front of architectures (--pareto), the
    best architectures (--best), means over groups (--by), the best of each group (--best and --by), an SQL query
    (--sql).
    """
    format = format_for(output, format)
    printers.check_output(format, output)
    rows = nas.load(study, storage=storage, source=source)
    printers.print_query(
        rows,
        where=where,
        budget=budget,
        pareto=pareto,
        knee=knee,
        best=best,
        by=by,
        sql=sql,
        columns=columns,
        order_by=order_by,
        limit=limit,
        format=format,
        output=output,
    )


@command("front", Group.START)
def front(
    study: options.StudiesOption = None,
    storage: options.Storage = DEFAULT_STORE,
    source: options.Source = [],
    where: options.Where = None,
    budget: options.Budget = [],
    objectives: options.Objectives = None,
    plot: options.Plot = None,
) -> None:
    """Print and draw the Pareto front of a study with its baselines; by default the newest search's.

    --budget and --where filter its rows, --objectives gives other objectives than the search's.
    """
    printers.check_output(plot=plot)
    rows = nas.load(study, storage=storage, source=source)
    printers.print_front(rows, plot, where=where, budget=budget, objectives=objectives)


@command("effects", Group.RESULTS)
def effects(
    axis: options.AxisColumn,
    study: options.StudiesOption = None,
    storage: options.Storage = DEFAULT_STORE,
    source: options.Source = [],
    metric: options.Metric = None,
    at: options.At = None,
    where: options.Where = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.ColumnsOutput = None,
    plot: options.Plot = None,
) -> None:
    """Estimate the effect of each value of AXIS, all else equal, relative to resnet or the first value.

    Architectures of equal shape are compared or, with --at, those of equal cost. The 95 % intervals hold for all values
    together. Ratios say what each value costs, relative to the same reference. For several tasks, Kendall's tau says
    whether they rank the values alike.
    """
    format = format_for(output, format)
    printers.check_output(format, output, plot=plot, has_rows=False)
    rows = nas.load(study, storage=storage, source=source)
    printers.print_effects(rows if where is None else rows.where(where), axis, metric, at, format, output, plot)


@command("report", Group.START)
def report(
    study: options.OptionalStudyArgument = None,
    storage: options.Storage = DEFAULT_STORE,
    source: options.Source = [],
    where: options.Where = None,
    page: options.PageOutput = None,
    topologies: options.TopologyCharts = False,
) -> None:
    """Write a study as one self-contained HTML page (extra `report`); by default the newest search's.

    It shows the front with errors, hypervolume, training curves, where parameters go, the effect of each axis,
    topologies at equal cost, every architecture, and how to reproduce the study. --topologies adds how each layer of
    the saved networks mixes the outputs of earlier layers.
    """
    printers.check_output(page=page)
    rows = nas.load(study, storage=storage, source=source)
    printers.print_report(rows if where is None else rows.where(where), page, topologies=topologies)


@command("dashboard", Group.RESULTS)
def dashboard(storage: options.Storage = DEFAULT_STORE, port: options.Port = 8080) -> None:
    """Serve Optuna's dashboard on a copy of the searches, on this machine, until Ctrl-C (extra `dashboard`).

    Objectives have names, and trials their costs and test metrics. Changes made there do not reach the store.
    """
    from nas.cli.dashboard import copy_searches, serve

    serve(copy_searches(storage), port)
