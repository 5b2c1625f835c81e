"""Commands that train networks, or replay recorded trainings."""

import nas
from nas.cli import options, printers
from nas.cli.command import Group, command
from nas.environment.paths import DEFAULT_STORE
from nas.report.format import Format, format_for
from nas.request.text_checks import check_call
from nas.samplers.rungs import Rungs
from nas.workers.resources import Resources, seconds_of


@command("search", Group.START)
def search(
    task: options.Task,
    space: options.Space = "",
    arch: options.Arch = "",
    axis: options.Axis = [],
    budget: options.Budget = [],
    objectives: options.Objectives = None,
    trials: options.Trials = 24,
    seeds: options.LeastSeeds = 1,
    reeval_fraction: options.ReevalFraction = 0.25,
    rungs: options.Rungs = 0,
    min_fraction: options.MinFraction = 0.05,
    reduction_factor: options.ReductionFactor = 3.0,
    preset: options.Preset = "proxy",
    settings: options.Settings = "",
    seed: options.Seed = 0,
    sampler: options.Sampler = "",
    workers: options.Workers = None,
    threads: options.Threads = 1,
    data: options.Data = None,
    study: options.Study = None,
    storage: options.Storage = DEFAULT_STORE,
    save_models: options.SaveModels = "front",
    profile: options.Profile = False,
    log: options.Log = None,
    timeout: options.Timeout = None,
    trial_timeout: options.TrialTimeout = None,
    trial_memory: options.TrialMemory = None,
    trial_gpus: options.TrialGPUs = None,
    timings: options.Timings = False,
    plot: options.Plot = None,
) -> None:
    """Search TASK for the Pareto front of its objectives inside a budget; run again to resume."""
    printers.check_output(plot=plot)
    check_call(task=task, budget=budget, settings=settings, sampler=sampler, trials=trials, seeds=seeds, seed=seed,
               save_models=save_models, storage=storage, log=log)  # fmt: skip
    resources = Resources(
        workers, threads, trial_timeout=trial_timeout, trial_memory=trial_memory, trial_gpus=trial_gpus
    )
    seconds_of("timeout", timeout)
    early_stopping = Rungs(rungs, min_fraction, reduction_factor)
    result = nas.search(
        task,
        space=space,
        arch=arch,
        axis=axis,
        budget=budget,
        objectives=objectives,
        trials=trials,
        seeds=seeds,
        reeval_fraction=reeval_fraction,
        rungs=early_stopping,
        preset=preset,
        settings=settings,
        seed=seed,
        sampler=sampler,
        resources=resources,
        data=data,
        study=study,
        storage=storage,
        save_models=save_models,
        profile=profile,
        log=log,
        timeout=timeout,
        timings=timings,
    )
    printers.print_front(result, plot)


@command("evaluate", Group.TRAIN)
def evaluate(
    task: options.Task,
    arch: options.Arch = "",
    topology: options.Topology = None,
    preset: options.Preset = "proxy",
    settings: options.Settings = "",
    seed: options.Seed = 0,
    threads: options.Threads = 1,
    data: options.Data = None,
    start: options.Start = None,
    study: options.Study = None,
    storage: options.Storage = DEFAULT_STORE,
    max_steps: options.MaxSteps = None,
    save: options.Save = None,
    render: options.Render = None,
    profile: options.Profile = False,
    measure: options.Measure = [],
    log: options.Log = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Train one architecture and print its row; a stored evaluation is not repeated."""
    format = format_for(output, format)
    printers.check_output(format, output)
    check_call(task=task, topology=topology, settings=settings, seed=seed, threads=threads, max_steps=max_steps,
               storage=storage, log=log)  # fmt: skip
    row = nas.evaluate(
        task,
        arch=arch,
        topology=topology,
        preset=preset,
        settings=settings,
        seed=seed,
        threads=threads,
        data=data,
        start=start,
        study=study,
        storage=storage,
        max_steps=max_steps,
        save=save,
        render=render,
        profile=profile,
        measure=measure,
        log=log,
    )
    printers.print_row(row, format, output)


@command("audit", Group.TRAIN)
def audit(
    task: options.Task,
    architectures: options.Architectures = 10,
    seeds: options.Seeds = 3,
    preset: options.Preset = "proxy",
    space: options.Space = "",
    arch: options.Arch = "",
    axis: options.Axis = [],
    budget: options.Budget = [],
    settings: options.Settings = "",
    workers: options.Workers = None,
    threads: options.Threads = 1,
    data: options.Data = None,
    storage: options.Storage = DEFAULT_STORE,
    trial_timeout: options.TrialTimeout = None,
    trial_memory: options.TrialMemory = None,
    trial_gpus: options.TrialGPUs = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Estimate the noise of a task's metrics from a few architectures with several seeds each.

    The architectures are spread over the space by cost. Their rows stay in the store: run again with more seeds or
    architectures to train only what is missing. Audits of other presets in the store are compared with this one.
    """
    format = format_for(output, format)
    printers.check_output(format, output, has_rows=seeds != 0)
    check_call(task=task, budget=budget, settings=settings, seeds=seeds, storage=storage)
    resources = Resources(
        workers, threads, trial_timeout=trial_timeout, trial_memory=trial_memory, trial_gpus=trial_gpus
    )
    result = nas.audit(
        task,
        architectures=architectures,
        seeds=seeds,
        preset=preset,
        space=space,
        arch=arch,
        axis=axis,
        budget=budget,
        settings=settings,
        resources=resources,
        data=data,
        storage=storage,
    )
    printers.print_audit(result, format, output)


@command("retrofit", Group.TRAIN)
def retrofit(
    checkpoint: options.Checkpoint,
    topology: options.RequiredTopology,
    task: options.TaskOption = None,
    preset: options.OptionalPreset = None,
    settings: options.Settings = "",
    seed: options.Seed = 0,
    threads: options.Threads = 1,
    data: options.Data = None,
    study: options.Study = None,
    storage: options.Storage = DEFAULT_STORE,
    save: options.Save = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Replace the topology of a trained residual network, with equal outputs at first, and train it further.

    Preset, settings and data default to those of the checkpoint. Name the task if it is your own file: a checkpoint
    runs no code. The result is saved in --save, or next to the checkpoint.
    """
    format = format_for(output, format)
    printers.check_output(format, output)
    check_call(topology=topology, settings=settings, seed=seed, threads=threads, storage=storage)
    row = nas.retrofit(
        checkpoint,
        topology,
        task=task,
        preset=preset,
        settings=settings,
        seed=seed,
        threads=threads,
        data=data,
        study=study,
        storage=storage,
        save=save,
    )
    printers.print_retrofit(row, checkpoint, topology, save, format, output)


@command("compare", Group.TRAIN)
def compare(
    task: options.Task,
    arch: options.Archs = [],
    topology: options.Topologies = None,
    match: options.Match = None,
    preset: options.Preset = "proxy",
    settings: options.Settings = "",
    seeds: options.OptionalSeeds = 0,
    tune: options.Tune = [],
    tune_trials: options.TuneTrials = None,
    workers: options.Workers = None,
    threads: options.Threads = 1,
    data: options.Data = None,
    study: options.Study = None,
    storage: options.Storage = DEFAULT_STORE,
    profile: options.Profile = False,
    log: options.Log = None,
    trial_timeout: options.TrialTimeout = None,
    trial_memory: options.TrialMemory = None,
    trial_gpus: options.TrialGPUs = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.Output = None,
    curves: options.Curves = None,
    plot: options.Plot = None,
) -> None:
    """Compare the costs of architectures and, with --seeds, their trained metrics."""
    format = format_for(output, format)
    printers.check_output(format, output, curves=curves, plot=plot, has_rows=seeds != 0)
    printers.check_seeds(seeds, curves=curves, plot=plot)
    check_call(task=task, topologies=topology, match=match, settings=settings, seeds=seeds, tune_trials=tune_trials,
               storage=storage, log=log)  # fmt: skip
    resources = Resources(
        workers, threads, trial_timeout=trial_timeout, trial_memory=trial_memory, trial_gpus=trial_gpus
    )
    result = nas.compare(
        task,
        arch=arch,
        topology=topology,
        match=match,
        preset=preset,
        settings=settings,
        seeds=seeds,
        tune=tune,
        tune_trials=tune_trials,
        resources=resources,
        data=data,
        study=study,
        storage=storage,
        profile=profile,
        log=log,
    )
    printers.print_comparison(result, format, output, curves, plot)


@command("tournament", Group.TRAIN)
def tournament(
    table: options.Table,
    samplers: options.Samplers = None,
    seeds: options.SearchSeeds = 20,
    trials: options.TrialsPerSearch = None,
    objectives: options.Objectives = None,
    budget: options.Budget = [],
    format: options.PrintFormat = Format.TABLE,
    output: options.ColumnsOutput = None,
    plot: options.Plot = None,
) -> None:
    """Compare samplers on a table of recorded trainings; nothing is trained.

    Each sampler searches once with each of the seeds 0, 1, 2 ... The score of a search is the hypervolume of its front
    on test, as a fraction of the whole table's. It is computed after 10, 25, 50, 75 and 100 % of the trials.
    """
    format = format_for(output, format)
    printers.check_output(format, output, plot=plot, has_rows=False)
    check_call(seeds=seeds, trials=trials)
    result = nas.tournament(table, samplers=samplers, seeds=seeds, trials=trials, objectives=objectives, budget=budget)
    printers.print_with_plot(result, format, output, plot)
