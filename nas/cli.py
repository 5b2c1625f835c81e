"""The `nas` command: thin, and quick to start. What a command needs is imported when it runs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from nas import options
from nas.options import Format, Kind, Printed
from search_spaces.errors import UserError, show_notices

app = typer.Typer(
    name="nas",
    help="Search network architectures under hard budgets, and query what was found.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; a user's mistake is one line and exit status 2."""
    show_notices()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler reads it when torch is loaded
    try:
        app()
    except UserError as error:
        print(f"nas: {error}", file=sys.stderr)
        sys.exit(2)


@contextmanager
def _can_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print("nas: interrupted; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def search(
    task: options.TaskName,
    space: options.Space = "joint",
    arch: options.Arch = "",
    budget: options.Budget = [],  # noqa: B006  # typer reads it, nobody changes it
    objectives: options.Objectives = None,
    trials: options.Trials = 24,
    preset: options.Preset = "proxy",
    seed: options.Seed = 0,
    sampler: options.Sampler = "",
    workers: options.WorkerCount = None,
    data: options.Data = None,
    study: options.Study = None,
    storage: options.Storage = options.DEFAULT_STORE,
    plot: options.Plot = None,
    profile: options.Profiled = False,
) -> None:
    """Search TASK for the Pareto front of its objectives inside a budget; the same command continues a search."""
    from nas.commands.search import Request, run

    request = Request(
        task=task,
        space=space,
        arch=arch,
        budget=budget,
        objectives=objectives,
        trials=trials,
        preset=preset,
        seed=seed,
        sampler=sampler,
        workers=workers,
        data=data,
        study=study,
        storage=storage,
        plot=plot,
        profile=profile,
    )
    with _can_go_on():
        run(request)


@app.command()
def evaluate(
    task: options.TaskName,
    arch: options.Arch = "",
    topology: options.Topology = None,
    preset: options.Preset = "proxy",
    seed: options.Seed = 0,
    data: options.Data = None,
    save: options.Save = None,
    render: options.Render = None,
    profile: options.Profiled = False,
    measure: options.Measures = [],  # noqa: B006  # as above
    format: options.OutputFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Train one architecture and print its Row."""
    from nas.commands.evaluate import Request, run

    request = Request(
        arch=arch,
        topology=topology,
        preset=preset,
        seed=seed,
        data=data,
        save=save,
        render=render,
        profile=profile,
        measures=measure,
        format=format,
        output=output,
    )
    run(task, request)


@app.command()
def retrofit(
    checkpoint: options.Checkpoint,
    topology: Annotated[str, options.TOPOLOGY],
    preset: Annotated[str | None, options.PRESET] = None,
    seed: options.Seed = 0,
    data: options.Data = None,
    save: options.Save = None,
    format: options.OutputFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Give the residual network of CHECKPOINT another topology, at first computing the same, and train it further.

    Preset and data are those that the network was trained with, where they are not given.
    """
    from nas.commands.evaluate import Request
    from nas.commands.evaluate import retrofit as run

    request = Request(topology=topology, preset=preset, seed=seed, data=data, save=save, format=format, output=output)
    run(checkpoint, request)


@app.command()
def cost(
    task: options.TaskName,
    arch: options.Arch = "",
    topology: options.Topology = None,
    preset: options.Preset = "proxy",
    data: options.Data = None,
    profile: options.Profiled = False,
    by: options.CostBy = None,
    format: options.OutputFormat = Format.TABLE,
) -> None:
    """Count the parameters, MACs and FLOPs of one architecture, without training it."""
    from nas.commands.cost import Request, run

    run(
        Request(
            task=task,
            arch=arch,
            topology=topology,
            preset=preset,
            data=data,
            profiled=profile,
            by=by,
            format=format,
        )
    )


@app.command(name="profile")
def profile_(
    task: options.TaskName,
    arch: options.Arch = "",
    topology: options.Topology = None,
    preset: options.Preset = "proxy",
    batch: options.Batch = None,
    data: options.Data = None,
    format: options.OutputFormat = Format.TABLE,
) -> None:
    """Measure time, memory and energy of one architecture on this device, and trace where the time goes."""
    from nas.commands.profile import Request, run

    run(Request(task=task, arch=arch, topology=topology, preset=preset, batch=batch, data=data, format=format))


@app.command()
def compare(
    task: options.TaskName,
    archs: options.Archs = [],  # noqa: B006  # typer reads it, nobody changes it
    topologies: options.Topologies = None,
    match: options.Match = None,
    preset: options.Preset = "proxy",
    seeds: options.Seeds = 0,
    workers: options.WorkerCount = None,
    data: options.Data = None,
    format: options.OutputFormat = Format.TABLE,
    output: options.Output = None,
    curves: options.Curves = None,
    profile: options.Profiled = False,
) -> None:
    """Set architectures side by side: what they cost and, with seeds, what they reach."""
    from nas.commands.compare import Request, run

    request = Request(
        task=task,
        archs=archs,
        topologies=topologies,
        match=match,
        preset=preset,
        seeds=seeds,
        workers=workers,
        data=data,
        format=format,
        output=output,
        curves=curves,
        profile=profile,
    )
    with _can_go_on():
        run(request)


@app.command()
def results(
    where: options.Where = None,
    pareto: options.Pareto = None,
    columns: options.Columns = None,
    order_by: options.OrderBy = None,
    limit: options.Limit = None,
    format: options.OutputFormat = Format.TABLE,
    output: options.Output = None,
    study: options.Study = None,
    storage: options.Storage = options.DEFAULT_STORE,
) -> None:
    """Query the Rows of a study."""
    from nas.commands.results import run

    run(where, pareto, columns, order_by, limit, format, output, study, storage)


@app.command()
def front(
    plot: options.Plot = None,
    study: options.Study = None,
    storage: options.Storage = options.DEFAULT_STORE,
) -> None:
    """Print and draw the Pareto front of a study."""
    from nas.commands.results import show_front

    show_front(study, storage, plot)


@app.command(name="list")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="What to list; everything installed without it.")] = None,
    storage: options.Storage = options.DEFAULT_STORE,
) -> None:
    """List tasks, spaces, topologies, presets, samplers and studies, with a line each."""
    from nas.commands.listing import run

    run(kind, storage)


@app.command()
def reproduce(
    what: Annotated[Printed, typer.Argument(help="What is compared.")],
    paper: options.Paper = None,
    format: options.OutputFormat = Format.TABLE,
) -> None:
    """Compare what papers print with what is counted here; exit status 1 where a reading is not what its label says."""
    from nas.commands.reproduce import run_params

    if not run_params(paper, format):
        raise typer.Exit(1)
