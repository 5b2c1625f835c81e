"""The options of the `nas` command: what each is called on the command line and what it means, written once.

A door's parameter of that name is the option; its default stands in the door.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nas.cli import completion
from nas.report.format import Format


class ListKind(StrEnum):
    """What `nas list` can list."""

    TASKS = "tasks"
    SPACES = "spaces"
    TOPOLOGIES = "topologies"
    PRESETS = "presets"
    SAMPLERS = "samplers"
    STUDIES = "studies"


class Printed(StrEnum):
    """What `nas reproduce` can compare."""

    PARAMS = "params"
    FLOPS = "flops"
    TOKENS = "tokens"
    MEMORY = "memory"
    TIME = "time"
    CLAIMS = "claims"
    FIGURES = "figures"


def _argument(name: str, what: str, kind: Any = str, **more: Any) -> Any:
    return Annotated[kind, typer.Argument(metavar=name, help=what, **more)]


def _option(flags: str, what: str, kind: Any = str, metavar: str | None = None, **more: Any) -> Any:
    return Annotated[kind, typer.Option(*flags.split(), metavar=metavar, help=what, **more)]


_TEXT, _TEXTS, _FILE, _NUMBER = str | None, list[str], Path | None, int | None

OPTIONS: Mapping[str, Any] = {
    "task": _argument(
        "TASK", "A task by name (`nas list tasks`), FILE.py:CLASS, or replay:TABLE.", autocompletion=completion.tasks
    ),
    "checkpoint": _argument("CHECKPOINT", "Folder of a trained network (`nas evaluate --save`).", Path),
    "own_checkpoint": _option(
        "--checkpoint",
        "Folder of a trained network (`nas evaluate --save`). Default: one that is drawn and not trained.",
        _FILE,
        "FOLDER",
    ),
    "key": _argument("KEY", "An architecture's key, or a row's identity; the beginning will do."),
    "from_study": _argument("STUDY", "Name of a study (`nas list studies`)."),
    "name": _argument("NAME", "What it is to be called: small letters, digits and dashes."),
    "what": _argument("WHAT", "What is compared.", Printed),
    "files": _argument("FILE...", "Rows as `--format jsonl` writes them.", list[Path]),
    "tasks": _option("--tasks", "lm-eval's tasks: lambada_openai,hellaswag,wikitext (`lm-eval ls tasks`).", str, "A,B"),
    "include": _option("--include", "Folder of task files of your own, in lm-eval's form.", _FILE, "FOLDER"),
    "examples": _option("--examples", "Of each task, the first ones. Default: all.", _NUMBER),
    "images": _argument("IMAGES", "A folder with train/ in it, or what else imagenet-vit takes as --data.", Path),
    "folder": _argument("FOLDER", "Where to write latents: --data of imagenet-dit.", Path),
    "vae": _option("--vae", "The autoencoder: a folder that diffusers wrote, or its name in the hub.", str, "FOLDER"),
    "size": _option("--size", "Side of the pictures, in pixels.", int),
    "kind": _argument("KIND", "What to list; everything installed without it.", ListKind | None),
    "of": _argument("NAME", "Of presets a task, of topologies a topology: what can be set there.", _TEXT),
    "own_task": _option("--task", "The task, where it is in a file of yours: FILE.py:CLASS.", _TEXT, "TASK"),
    "study": _option(
        "--study",
        "Name of the study; to ask: also `all`, or A,B. Default: the newest search with rows, or one of its own.",
        _TEXT,
        "NAME",
    ),
    "storage": _option("--storage", "Database of the studies: sqlite:///FILE, postgresql://...", str, "URL"),
    "source": _option(
        "--from",
        "Ask a file (.jsonl, .csv, .json, .parquet) or a table that ships (`tables`: all); with --study both together.",
        _TEXTS,
        "FILE",
    ),
    "seed": _option("--seed", "Seed of the search and of every training run.", int),
    "workers": _option(
        "--workers",
        "Evaluations at once, above 1 in own processes; or a Ray cluster: ray, ray://HOST:PORT. Default: one for each "
        "GPU, or each core without one.",
        _TEXT,
        "N|ray",
        envvar="NAS_WORKERS",
    ),
    "threads": _option("--threads", "Threads of the CPU that each training, or each measurement, has.", int),
    "preset": _option("--preset", "How thoroughly to train: smoke, proxy, paper ... (`nas list presets`).", _TEXT),
    "settings": _option("--set", "Changes to the preset's recipe: lr=1e-3,weight_decay=0.", str, "FIELD=VALUE,..."),
    "data": _option("--data", "Folder or name of the data, where a task needs one.", _TEXT, "PATH"),
    "table": _argument("TABLE", "A table of recorded trainings: replay:NAME, or replay:FILE.jsonl of yours."),
    "samplers": _option(
        "--samplers",
        "What is compared (`nas list samplers`). Default: all installed.",
        _TEXT,
        "A,B",
        autocompletion=completion.samplers,
    ),
    "sampler": _option(
        "--sampler",
        "What proposes architectures (`nas list samplers`), or MODULE:CLASS of Optuna's.",
        autocompletion=completion.samplers,
    ),
    "space": _option(
        "--space",
        "A search space by name (`nas list spaces`), or timm:MODEL. Default: joint, or a task's own.",
        autocompletion=completion.spaces,
    ),
    "axis": _option(
        "--axis", "Another axis of the space, or other values: recipe.lr=1e-3,3e-3.", _TEXTS, "NAME=VALUE,..."
    ),
    "arch": _option("--arch", "Changes to the task's base architecture: depth=7,heads=16.", str, "FIELD=VALUE,..."),
    "archs": _option("--arch", "Changes to the task's base architecture: depth=7,heads=16.", _TEXTS, "FIELD=VALUE,..."),
    "topology": _option(
        "--topology",
        'Topology, with its options: "dca(k=2)" (`nas list topologies`).',
        _TEXT,
        autocompletion=completion.topologies,
    ),
    "topologies": _option(
        "--topology",
        'Topologies that each architecture is wired by: resnet,"dca(k=2)"; or all.',
        _TEXT,
        "A,B",
        autocompletion=completion.topologies,
    ),
    "widths": _option(
        "--widths", "Of the networks. Default: the architecture's, twice, 4 and 8 times it.", _TEXT, "A,B"
    ),
    "match": _option(
        "--match", "Change `hidden` of the others until they cost what the first does.", _TEXT, "params|flops"
    ),
    "curves": _option("--curves", "Write validation metrics on the way there.", _FILE, "FILE.csv"),
    "tune": _option(
        "--tune",
        "First give each architecture its own of these, by trainings with another seed: lr,weight_decay.",
        _TEXTS,
        "FIELD,...",
    ),
    "tune_trials": _option("--tune-trials", "How many trainings that takes for each. Default: 8.", _NUMBER),
    "architectures": _option("--architectures", "How many, spread over the space by their FLOPs.", int),
    "seeds": _option(
        "--seeds",
        "Seeds that each is trained with; in a search at least, in `compare` 0 counts. Of a tournament: its searches.",
        int,
    ),
    "confirm": _option(
        "--confirm", "Share of the trials that, at the end, train what may be on the front with fresh seeds.", float
    ),
    "rungs": _option("--rungs", "At how many steps trainings are held; those that may be on the front go on.", int),
    "grace": _option("--grace", "Share of a training before the first of --rungs.", float),
    "factor": _option("--factor", "How much further each of --rungs lies than the one before it.", float),
    "until": _option(
        "--until", "Stop at the first report at this step or behind it; without it, go on.", _NUMBER, "STEP", min=1
    ),
    "start": _option(
        "--start",
        "Begin with the weights of this trained network, whose architecture it then has (`nas evaluate --save`).",
        _FILE,
        "FOLDER",
    ),
    "save": _option("--save", "Keep the trained network there as well.", _FILE, "FOLDER"),
    "keep": _option("--keep", "Which trained networks stay: the front's, all or none.", str, "front|all|none"),
    "log": _option("--log", "Write the curve of each training as well, beside the store.", _TEXT, "tensorboard"),
    "to": _option("--to", "The file: .safetensors, .pt2 or .onnx.", Path, "FILE"),
    "render": _option(
        "--render",
        "Show there what the trained network does: FILE.gif or FILE.mp4, FILE.png of one that draws.",
        _FILE,
        "FILE",
    ),
    "measure": _option("--measure", "Measure this of the trained network as well: conditioning.", _TEXTS, "NAME"),
    "budget": _option("--budget", 'Bounds that every network keeps: "params<=100k", "20M<=params<=24M".', _TEXTS),
    "objectives": _option("--objectives", "What to search for. Default: the task's metric, flops.", _TEXT, "A,B"),
    "trials": _option("--trials", "Trainings a study is to hold in all, or each search of a tournament has.", _NUMBER),
    "timeout": _option("--timeout", "End after that time; the same command goes on: 90s, 30m, 2h.", _TEXT, "TIME"),
    "trial_timeout": _option("--trial-timeout", "Fail an evaluation that takes longer: 90s, 30m, 2h.", _TEXT, "TIME"),
    "trial_memory": _option(
        "--trial-memory",
        "Memory that an evaluation may take beyond what its process and its task begin with: 4G, 4GiB.",
        _TEXT,
        "BYTES",
    ),
    "trial_gpus": _option(
        "--trial-gpus",
        "GPUs that an evaluation has: 0.5 is half of one, 2 train together, auto shares each by its load.",
        _TEXT,
        "N",
    ),
    "where": _option("--where", 'Condition on columns: "flops < 50M and depth > 2".', _TEXT, "SQL"),
    "pareto": _option("--pareto", "Keep the rows that nothing beats in these columns.", _TEXT, "A,B"),
    "columns": _option("--columns", "Columns to print, or `all`.", _TEXT, "A,B"),
    "order_by": _option("--order-by", "Columns to order by, each as NAME, or -NAME from the greatest.", _TEXT, "A,B"),
    "limit": _option("--limit", "How many rows to print, or with --best of each task.", _NUMBER, min=1),
    "format": _option("--format", "How to print.", Format),
    "output": _option("--output -o", "Write there, and print nothing.", _FILE, "FILE.csv|.json|.jsonl|.parquet"),
    "columns_file": _option("--output -o", "Write there, and print nothing.", _FILE, "FILE.csv|.json|.parquet"),
    "new_file": _option("--output -o", "Where to write it. Default: a file of that name, here.", _FILE, "FILE.py"),
    "page": _option("--output -o", "Where to write the report.", _FILE, "FILE.html"),
    "wirings": _option("--wirings", "Show as well how the front's networks are wired, of those that are kept.", bool),
    "paper": _option("--paper", "Only this paper: ancre, dca, leaner or rmt.", _TEXT, "NAME"),
    "timings": _option("--timings", "Say at the end what the search spent its time on.", bool),
    "profile": _option("--profile", "First measure time, memory and energy, and keep a trace of training steps.", bool),
    "batch": _option("--batch", "Examples of a training step. Default: as the preset has.", _NUMBER),
    "knee": _option("--knee", "Of --pareto, the row that gives up least of all columns together.", bool),
    "best": _option("--best", "Architectures, the best in this first, with the chance that none is better.", _TEXT),
    "groups": _option(
        "--by", "Means over rows that agree in these columns; with --best, each one's best.", _TEXT, "A,B"
    ),
    "axis_of": _argument("AXIS", "A column that tells architectures apart: topology, depth, recipe_lr ..."),
    "metric": _option("--metric", "The column that was measured. Default: the task's first metric.", _TEXT, "NAME"),
    "at": _option("--at", "The cost (flops, params) at which architectures are equal, not their shape.", _TEXT, "COST"),
    "sql": _option("--sql", 'Ask in SQL: "SELECT topology, max(accuracy) FROM rows GROUP BY topology".', _TEXT),
    "by": _option("--by", "Instead of the sums, counts of each layer, or of each operator.", _TEXT, "layer|operator"),
    "port": _option("--port", "Where the dashboard listens, on this machine alone.", int),
    "drawing": _option("--output -o", "Draw it there, and print no tables.", _FILE, "FILE.png|.svg|.pdf"),
    "save_config": _option(
        "--save-config", "Write what was typed there as well, for the same command with @FILE.", _FILE, "FILE.toml"
    ),
    "plot": _option("--plot", "Where to draw it.", _FILE, "FILE.png"),
}
"""Parameter of a door, or of what prints what it returns -> the option."""
