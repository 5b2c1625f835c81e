"""Commands that measure one network."""

import nas
from nas.cli import options, printers
from nas.cli.command import Group, command
from nas.report.format import Format, format_for
from nas.request.text_checks import check_call


@command("cost", Group.MEASURE)
def cost(
    task: options.Task,
    arch: options.Arch = "",
    topology: options.Topology = None,
    preset: options.Preset = "proxy",
    data: options.Data = None,
    by: options.CostBy = None,
    format: options.PrintFormat = Format.TABLE,
) -> None:
    """Count the parameters, MACs and FLOPs of an architecture; nothing is trained."""
    printers.check_output(format, has_rows=False)
    check_call(task=task, topology=topology, by=by)
    records = nas.cost(task, arch=arch, topology=topology, preset=preset, data=data, by=by)
    printers.print_costs(records, format)


@command("profile", Group.MEASURE)
def profile(
    task: options.Task,
    arch: options.Arch = "",
    topology: options.Topology = None,
    preset: options.Preset = "proxy",
    settings: options.Settings = "",
    batch: options.Batch = None,
    threads: options.Threads = 1,
    data: options.Data = None,
    format: options.PrintFormat = Format.TABLE,
) -> None:
    """Measure time, memory and energy of an architecture on this device, and trace its operators."""
    printers.check_output(format, has_rows=False)
    check_call(task=task, topology=topology, settings=settings, batch=batch, threads=threads)
    record = nas.profile(
        task,
        arch=arch,
        topology=topology,
        preset=preset,
        settings=settings,
        batch=batch,
        threads=threads,
        data=data,
    )
    printers.print_profile(record, format)


@command("check-mup", Group.MEASURE)
def check_mup(
    task: options.Task,
    arch: options.Arch = "",
    topology: options.Topology = None,
    widths: options.Widths = None,
    seeds: options.Seeds = 3,
    preset: options.Preset = "proxy",
    settings: options.Settings = "",
    data: options.Data = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.ColumnsOutput = None,
    plot: options.Plot = None,
) -> None:
    """Check muP: how far five training steps change the outputs of layers, at several widths.

    Width grows by the number of heads, and hidden features with it; the narrowest network is muP's base. In the
    standard parametrization, outputs of wider networks change more. With a correct muP the slope over width is near 0.
    """
    format = format_for(output, format)
    printers.check_output(format, output, plot=plot, has_rows=False)
    check_call(task=task, topology=topology, settings=settings, seeds=seeds)
    result = nas.check_mup(
        task,
        arch=arch,
        topology=topology,
        widths=widths,
        seeds=seeds,
        preset=preset,
        settings=settings,
        data=data,
    )
    printers.print_with_plot(result, format, output, plot)


@command("show", Group.MEASURE)
def show(
    task: options.Task,
    arch: options.Arch = "",
    topology: options.Topology = None,
    checkpoint: options.CheckpointOption = None,
    preset: options.OptionalPreset = None,
    settings: options.Settings = "",
    seed: options.Seed = 0,
    data: options.Data = None,
    format: options.PrintFormat = Format.TABLE,
    plot: options.DrawingOutput = None,
) -> None:
    """Measure how strongly each layer, and the head, reads the output of every earlier layer.

    The network is at initialization, or that of --checkpoint with its preset, settings and data. The measurement takes
    one batch of the task's data, and includes the sizes of activations and gradients at each layer.
    """
    printers.check_output(format, plot=plot, has_rows=False)
    check_call(task=task, topology=topology, settings=settings, seed=seed)
    report = nas.show(
        task,
        arch=arch,
        topology=topology,
        checkpoint=checkpoint,
        preset=preset,
        settings=settings,
        seed=seed,
        data=data,
    )
    printers.print_wiring(report, format, plot)
