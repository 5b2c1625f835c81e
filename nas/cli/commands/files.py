"""Commands that convert checkpoints, images and rows, or write a template."""

import nas
from nas.cli import options, printers
from nas.cli.command import Group, command
from nas.environment.paths import DEFAULT_STORE
from nas.report.format import Format, format_for
from nas.request.text_checks import check_call


@command("export", Group.RESULTS)
def export(
    study: options.OptionalStudyArgument = None,
    key: options.OptionalKey = None,
    to: options.To = None,
    raw: options.Raw = False,
    task: options.TaskOption = None,
    data: options.Data = None,
    card: options.Card = False,
    storage: options.Storage = DEFAULT_STORE,
) -> None:
    """Export the trained network of architecture KEY in STUDY to a file, a folder or the hub, and check it.

    Of several seeds, the best on validation is exported. Graphs (.pt2, .onnx) include the task's preprocessing.
    timm:FOLDER and transformers:FOLDER are for residual vision transformers and decoders. hub:USER/NAME uploads such a
    folder, or else the .pt2, with a card. Name the task if it is your own file: a study runs no code.
    """
    report = nas.export(study, key, to, raw=raw, task=task, data=data, card=card, storage=storage)
    printers.print_export(report)


@command("predict", Group.RESULTS)
def predict(
    network: options.Network,
    files: options.InputFiles,
    tokens: options.Tokens = 50,
    task: options.TaskOption = None,
    data: options.Data = None,
    format: options.PrintFormat = Format.TABLE,
    output: options.ColumnsOutput = None,
) -> None:
    """Classify images, classify the lines of tables, or continue texts with a trained network.

    NETWORK is an exported .pt2 or .onnx file, or a folder of a trained network. Tables are CSV files of numbers.
    """
    format = format_for(output, format)
    printers.check_output(format, output, has_rows=False)
    result = nas.predict(network, files, tokens=tokens, task=task, data=data)
    printers.print_predictions(result, format, output)


@command("downstream", Group.TRAIN)
def downstream(
    checkpoint: options.Checkpoint,
    tasks: options.LMTasks,
    include: options.Include = None,
    examples: options.Examples = None,
    task: options.TaskOption = None,
    data: options.Data = None,
    storage: options.Storage = DEFAULT_STORE,
    format: options.PrintFormat = Format.TABLE,
    output: options.Output = None,
) -> None:
    """Evaluate a trained decoder on tasks of lm-eval (extra `downstream`), and add the scores to its row.

    Tasks must score given texts: lambada_openai, hellaswag, piqa, arc_easy, arc_challenge, winogrande, wikitext ...
    Their data come from the hub, or from files that a task in --include names.
    """
    format = format_for(output, format)
    printers.check_output(format, output)
    check_call(examples=examples, storage=storage)
    row = nas.downstream(
        checkpoint, tasks=tasks, include=include, examples=examples, task=task, data=data, storage=storage
    )
    printers.print_row(row, format, output)


@command("encode", Group.PAPERS)
def encode(
    images: options.Images,
    folder: options.LatentFolder,
    vae: options.VAE,
    size: options.Size = 256,
) -> None:
    """Encode the training images of IMAGES as latents in FOLDER, for imagenet-dit.

    Each image is cropped as for DiT, and encoded together with its mirror image. FOLDER also gets the autoencoder and
    reference images for the metrics. Existing latents are reused.
    """
    printers.print_latents(nas.encode(images, folder, vae=vae, size=size))


@command("import", Group.RESULTS)
def import_rows(files: options.Files, study: options.Study = None, storage: options.Storage = DEFAULT_STORE) -> None:
    """Import rows from JSON Lines into a store: all of them or, if a line is no row, none.

    Imported rows are queried like any others, and their trainings are not repeated. Importing a file twice adds
    nothing.
    """
    printers.print_import(nas.import_rows(files, study=study, storage=storage))


@command("new-task", Group.EXTEND)
def new_task(name: options.NewName, output: options.NewFileOutput = None) -> None:
    """Write a commented task to start from, as one runnable file. No file is overwritten."""
    printers.print_new_file(nas.new_task(name, output=output))


@command("new-topology", Group.EXTEND)
def new_topology(name: options.NewName, output: options.NewFileOutput = None) -> None:
    """Write a commented topology to start from, as one runnable file. No file is overwritten."""
    printers.print_new_file(nas.new_topology(name, output=output))
