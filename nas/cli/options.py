"""The options of the `nas` command: flag, type and help of each.

Commands annotate their parameters with them: `trials: options.Trials = 24`.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from nas.cli import completion
from nas.report.format import Format
from nas.request.text_checks import LogFormat


class ListKind(StrEnum):
    """What `nas list` can list."""

    TASKS = "tasks"
    SPACES = "spaces"
    TOPOLOGIES = "topologies"
    PRESETS = "presets"
    SAMPLERS = "samplers"
    STUDIES = "studies"
    TABLES = "tables"


class PaperQuantity(StrEnum):
    """What `nas reproduce` can compare."""

    PARAMS = "params"
    FLOPS = "flops"
    TOKENS = "tokens"
    MEMORY = "memory"
    TIME = "time"
    CLAIMS = "claims"
    FIGURES = "figures"


# Arguments

Task = Annotated[
    str,
    Argument(
        metavar="TASK",
        help="A task by name (`nas list tasks`), FILE.py:CLASS, or replay:TABLE.",
        autocompletion=completion.tasks,
    ),
]
Checkpoint = Annotated[
    Path, Argument(metavar="CHECKPOINT", help="Folder of a trained network (`nas evaluate --save`).")
]
Table = Annotated[
    str, Argument(metavar="TABLE", help="A table of recorded trainings: replay:NAME or replay:FILE.jsonl.")
]
OptionalStudyArgument = Annotated[
    str | None, Argument(metavar="STUDY", help="Name of a study (`nas list studies`). Default: the newest search.")
]
OptionalKey = Annotated[
    str | None,
    Argument(
        metavar="KEY",
        help="Key of an architecture or identity of a row, or the beginning of either. Default: the front's knee.",
    ),
]
NewName = Annotated[str, Argument(metavar="NAME", help="Name of the new file: small letters, digits and dashes.")]
Files = Annotated[list[Path], Argument(metavar="FILE...", help="Files of rows, as `--format jsonl` writes them.")]
Images = Annotated[
    Path, Argument(metavar="IMAGES", help="Folder with train/, or anything else that imagenet-vit takes as --data.")
]
LatentFolder = Annotated[
    Path, Argument(metavar="FOLDER", help="Folder for the latents, which imagenet-dit takes as --data.")
]
AxisColumn = Annotated[
    str, Argument(metavar="AXIS", help="Column in which architectures differ: topology, depth, recipe_lr ...")
]
Kind = Annotated[ListKind | None, Argument(metavar="KIND", help="What to list. Default: everything installed.")]
ListedName = Annotated[
    str | None,
    Argument(metavar="NAME", help="Show every preset of this task, or every option of this topology."),
]
What = Annotated[PaperQuantity, Argument(metavar="WHAT", help="What to compare.")]

# Networks and training

Space = Annotated[
    str,
    Option(
        "--space",
        help="Search space by name (`nas list spaces`), or timm:MODEL. Default: the task's own, or joint.",
        autocompletion=completion.spaces,
    ),
]
Axis = Annotated[
    list[str],
    Option("--axis", metavar="NAME=VALUE,...", help="Add an axis or change its values: recipe.lr=1e-3,3e-3."),
]
_ARCH = Option("--arch", metavar="FIELD=VALUE,...", help="Change the task's base architecture: depth=7,heads=16.")
Arch = Annotated[str, _ARCH]
Archs = Annotated[list[str], _ARCH]
_TOPOLOGY = Option(
    "--topology",
    help='Topology with its options: "dca(k=2)" (`nas list topologies`).',
    autocompletion=completion.topologies,
)
Topology = Annotated[str | None, _TOPOLOGY]
RequiredTopology = Annotated[str, _TOPOLOGY]
Topologies = Annotated[
    str | None,
    Option(
        "--topology",
        metavar="A,B",
        help='Build each architecture with these topologies: resnet,"dca(k=2)"; or all.',
        autocompletion=completion.topologies,
    ),
]
Match = Annotated[
    str | None,
    Option("--match", metavar="params|flops", help="Change `hidden` of the others to match the cost of the first."),
]
Widths = Annotated[
    str | None,
    Option("--widths", metavar="A,B", help="Widths to train. Default: 1, 2, 4 and 8 times the architecture's."),
]
_PRESET = Option("--preset", help="How thoroughly to train: smoke, proxy, paper ... (`nas list presets`).")
Preset = Annotated[str, _PRESET]
OptionalPreset = Annotated[str | None, _PRESET]
Settings = Annotated[
    str, Option("--set", metavar="FIELD=VALUE,...", help="Change the preset's recipe: lr=1e-3,weight_decay=0.")
]
Data = Annotated[
    str | None, Option("--data", metavar="PATH", help="Folder or name of the data, where a task needs one.")
]
TaskOption = Annotated[
    str | None, Option("--task", metavar="TASK", help="The task, if it is in your own file: FILE.py:CLASS.")
]
Start = Annotated[
    Path | None,
    Option(
        "--start",
        metavar="FOLDER",
        help="Start from this trained network: its weights and its architecture (`nas evaluate --save`).",
    ),
]
CheckpointOption = Annotated[
    Path | None,
    Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Folder of a trained network (`nas evaluate --save`). Default: a network at initialization.",
    ),
]
MaxSteps = Annotated[
    int | None,
    Option(
        "--max-steps", metavar="STEP", min=1, help="Stop at the first report from this step on; run again to resume."
    ),
]
Batch = Annotated[int | None, Option("--batch", help="Examples in a training step. Default: the preset's.")]

# The search

Budget = Annotated[list[str], Option("--budget", help='Bounds of every network: "params<=100k", "20M<=params<=24M".')]
Objectives = Annotated[
    str | None, Option("--objectives", metavar="A,B", help="What to optimize. Default: the task's metric, flops.")
]
Sampler = Annotated[
    str,
    Option(
        "--sampler",
        help="Sampler that proposes architectures (`nas list samplers`), or MODULE:CLASS of Optuna's.",
        autocompletion=completion.samplers,
    ),
]
Samplers = Annotated[
    str | None,
    Option(
        "--samplers",
        metavar="A,B",
        help="Samplers to compare (`nas list samplers`). Default: all installed.",
        autocompletion=completion.samplers,
    ),
]
Trials = Annotated[int, Option("--trials", help="Total number of trials.")]
TrialsPerSearch = Annotated[int | None, Option("--trials", help="Number of trials of each search.")]
Architectures = Annotated[
    int, Option("--architectures", help="Number of architectures, spread over the space by FLOPs.")
]
Seed = Annotated[int, Option("--seed", help="Seed of the search and of every training.")]
Seeds = Annotated[int, Option("--seeds", help="Seeds per architecture.")]
LeastSeeds = Annotated[int, Option("--seeds", help="Minimum number of seeds per architecture.")]
OptionalSeeds = Annotated[int, Option("--seeds", help="Seeds per architecture; 0 only counts costs.")]
SearchSeeds = Annotated[int, Option("--seeds", help="Number of searches of each sampler, each with its own seed.")]
ReevalFraction = Annotated[
    float, Option("--reeval-fraction", help="Fraction of trials used to re-evaluate front candidates with new seeds.")
]
Rungs = Annotated[int, Option("--rungs", help="Number of early-stopping rungs.")]
MinFraction = Annotated[float, Option("--min-fraction", help="Fraction of a training before the first rung.")]
ReductionFactor = Annotated[
    float, Option("--reduction-factor", help="Ratio between the steps of one rung and of the one before.")
]
Tune = Annotated[
    list[str],
    Option("--tune", metavar="FIELD,...", help="Tune these first for each architecture, on another seed: lr."),
]
TuneTrials = Annotated[int | None, Option("--tune-trials", help="Tuning trials per architecture. Default: 8.")]
Timeout = Annotated[
    str | None, Option("--timeout", metavar="TIME", help="Stop after this time; run again to resume: 90s, 30m, 2h.")
]
Timings = Annotated[bool, Option("--timings", help="Print at the end where the time of the search went.")]

# Hardware

Workers = Annotated[
    str | None,
    Option(
        "--workers",
        metavar="N|ray",
        help="Parallel evaluations, or a Ray cluster: ray, ray://HOST:PORT. Default: one for each GPU, or CPU core.",
        envvar="NAS_WORKERS",
    ),
]
Threads = Annotated[int, Option("--threads", help="CPU threads of each training or measurement.")]
TrialTimeout = Annotated[
    str | None,
    Option("--trial-timeout", metavar="TIME", help="Fail an evaluation that takes longer: 90s, 30m, 2h."),
]
TrialMemory = Annotated[
    str | None,
    Option(
        "--trial-memory",
        metavar="BYTES",
        help="Memory limit of an evaluation, on top of its process and task at the start: 4G, 4GiB.",
    ),
]
TrialGPUs = Annotated[
    str | None,
    Option("--trial-gpus", metavar="N", help="GPUs of an evaluation: 2, 0.5 of one, or auto to share each by load."),
]

# Measurements and outputs of an evaluation

Profile = Annotated[bool, Option("--profile", help="First measure time, memory and energy, and trace training steps.")]
Measure = Annotated[
    list[str], Option("--measure", metavar="NAME", help="Also measure this of the trained network: conditioning.")
]
Save = Annotated[Path | None, Option("--save", metavar="FOLDER", help="Also save the trained network here.")]
SaveModels = Annotated[
    Literal["front", "all", "none"],
    Option("--save-models", metavar="front|all|none", parser=str, help="Which trained networks to save."),
]
Log = Annotated[
    LogFormat | None,
    Option("--log", metavar="tensorboard", parser=str, help="Also write TensorBoard curves of each training."),
]
Render = Annotated[
    Path | None,
    Option(
        "--render",
        metavar="FILE",
        help="Render the behaviour of the trained network: FILE.gif, FILE.mp4 or FILE.png.",
    ),
]
CostBy = Annotated[
    Literal["layer", "operator"] | None,
    Option("--by", metavar="layer|operator", parser=str, help="Break costs down by layer or operator."),
]
To = Annotated[
    Path | None,
    Option(
        "--to",
        metavar="PLACE",
        help="FILE.pt2, FILE.onnx, FILE.safetensors, timm:FOLDER, transformers:FOLDER or hub:USER/NAME. "
        "Default: TASK-KEY.pt2.",
    ),
]
Raw = Annotated[bool, Option("--raw", help="Leave the task's preprocessing out.")]
Network = Annotated[Path, Argument(metavar="NETWORK", help="An exported .pt2 or .onnx file, or a network's folder.")]
InputFiles = Annotated[list[Path], Argument(metavar="FILE...", help="Images, CSV files of numbers, or text files.")]
Tokens = Annotated[int, Option("--tokens", help="Number of tokens to add to each text.")]
Card = Annotated[bool, Option("--card", help="Also write a model card, FILE.md or FOLDER/README.md.")]
VAE = Annotated[str, Option("--vae", metavar="FOLDER", help="The autoencoder: a diffusers folder, or its hub name.")]
Size = Annotated[int, Option("--size", help="Side of the images, in pixels.")]
LMTasks = Annotated[
    str,
    Option("--tasks", metavar="A,B", help="Tasks of lm-eval: lambada_openai,hellaswag,wikitext (`lm-eval ls tasks`)."),
]
Include = Annotated[Path | None, Option("--include", metavar="FOLDER", help="Folder of your own lm-eval task files.")]
Examples = Annotated[int | None, Option("--examples", help="Number of examples per task. Default: all.")]

# Queries

Study = Annotated[
    str | None,
    Option("--study", metavar="NAME", help="Name of the study to add to. Default: one for this command or search."),
]
StudiesOption = Annotated[
    str | None,
    Option("--study", metavar="NAME", help="Study to read, several as A,B, or `all`. Default: the newest search."),
]
Storage = Annotated[
    str, Option("--storage", metavar="URL", help="Database of the studies: sqlite:///FILE, postgresql://...")
]
Source = Annotated[
    list[str],
    Option(
        "--from",
        metavar="FILE",
        help="Read a file (.jsonl, .csv, .json, .parquet) or a shipped table (`tables`: all), with --study both.",
    ),
]
Where = Annotated[
    str | None, Option("--where", metavar="SQL", help='Condition on columns: "flops < 50M and depth > 2".')
]
Pareto = Annotated[
    str | None, Option("--pareto", metavar="A,B", help="Print the Pareto front of architectures in these columns.")
]
Knee = Annotated[bool, Option("--knee", help="With --pareto: print only the knee point.")]
Best = Annotated[
    str | None,
    Option("--best", help="Rank architectures by this column, with the probability that each is the best."),
]
GroupBy = Annotated[str | None, Option("--by", metavar="A,B", help="Group by these columns; measured ones in ranges.")]
SQL = Annotated[
    str | None,
    Option("--sql", help='Query with SQL: "SELECT topology, max(accuracy) FROM rows GROUP BY topology".'),
]
Columns = Annotated[
    str | None, Option("--columns", metavar="A,B", help="Columns to print, averaged over groups or seeds, or `all`.")
]
OrderBy = Annotated[
    str | None, Option("--order-by", metavar="A,B", help="Columns to order by: NAME, or -NAME for descending.")
]
Limit = Annotated[
    int | None, Option("--limit", min=1, help="Number of lines to print; of architectures, for each task.")
]
Metric = Annotated[
    str | None, Option("--metric", metavar="NAME", help="Column to compare. Default: the task's first metric.")
]
At = Annotated[
    str | None, Option("--at", metavar="COST", help="Compare at equal cost (flops or params), not equal shape.")
]
Paper = Annotated[str | None, Option("--paper", metavar="NAME", help="Only this paper: ancre, dca, leaner or rmt.")]

# Output

PrintFormat = Annotated[Format, Option("--format", help="Output format.")]
Output = Annotated[
    Path | None,
    Option("--output", "-o", metavar="FILE.csv|.json|.jsonl|.parquet", help="Write to this file instead of printing."),
]
ColumnsOutput = Annotated[
    Path | None,
    Option("--output", "-o", metavar="FILE.csv|.json|.parquet", help="Write to this file instead of printing."),
]
NewFileOutput = Annotated[
    Path | None, Option("--output", "-o", metavar="FILE.py", help="Where to write. Default: NAME.py in this folder.")
]
PageOutput = Annotated[Path | None, Option("--output", "-o", metavar="FILE.html", help="Where to write the report.")]
DrawingOutput = Annotated[
    Path | None,
    Option("--output", "-o", metavar="FILE.png|.svg|.pdf", help="Draw to this file instead of printing tables."),
]
Curves = Annotated[
    Path | None, Option("--curves", metavar="FILE.csv", help="Write validation metrics over training to this file.")
]
Plot = Annotated[Path | None, Option("--plot", metavar="FILE.png", help="Draw to this file.")]
TopologyCharts = Annotated[
    bool, Option("--topologies", help="Also show how layers of the front's saved networks mix earlier outputs.")
]
Port = Annotated[int, Option("--port", help="Port of the dashboard, on this machine alone.")]
