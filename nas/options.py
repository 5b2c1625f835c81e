"""The options of the `nas` command, each with one meaning everywhere."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STORE = "sqlite:///nas-runs/studies.db"


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class Kind(StrEnum):
    """What `nas list` can list."""

    TASKS = "tasks"
    SPACES = "spaces"
    TOPOLOGIES = "topologies"
    PRESETS = "presets"
    SAMPLERS = "samplers"
    STUDIES = "studies"


class By(StrEnum):
    """What `nas cost` can divide costs by."""

    LAYER = "layer"
    OPERATOR = "operator"


class Printed(StrEnum):
    """What `nas reproduce` can compare."""

    PARAMS = "params"


TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task by name (`nas list tasks`), or FILE.py:CLASS.")]
Study = Annotated[
    str | None, typer.Option("--study", metavar="NAME", help="Name of the study. Default: the newest, or a new one.")
]
Storage = Annotated[
    str, typer.Option("--storage", metavar="URL", help="Database of the studies: sqlite:///FILE, postgresql://...")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the search and of every training run.")]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        envvar="NAS_WORKERS",
        help="Evaluations at once; above 1 in own processes. Default: one for each GPU, or each core without one.",
    ),
]
PRESET = typer.Option("--preset", help="How thoroughly to train: smoke, proxy or paper.")
Preset = Annotated[str, PRESET]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="PATH", help="Folder or name of the data, where a task needs one.")
]
Sampler = Annotated[str, typer.Option("--sampler", help="What proposes architectures (`nas list samplers`).")]
Space = Annotated[str, typer.Option("--space", help="A search space by name (`nas list spaces`), or timm:MODEL.")]
Arch = Annotated[
    str,
    typer.Option(
        "--arch", metavar="FIELD=VALUE,...", help="Changes to the task's base architecture: depth=7,heads=16."
    ),
]
TOPOLOGY = typer.Option("--topology", help='Topology, with its options: "dca(k=2)" (`nas list topologies`).')
Topology = Annotated[str | None, TOPOLOGY]
Checkpoint = Annotated[
    Path, typer.Argument(metavar="CHECKPOINT", help="Folder of a trained network (`nas evaluate --save`).")
]
Archs = Annotated[
    list[str],
    typer.Option("--arch", metavar="FIELD=VALUE,...", help="Changes to the task's base architecture; may be repeated."),
]
Topologies = Annotated[
    str | None,
    typer.Option("--topology", metavar="A,B", help='Topologies that each architecture is wired by: resnet,"dca(k=2)".'),
]
Match = Annotated[
    str | None,
    typer.Option(
        "--match",
        metavar="params|flops",
        help="Change `hidden` of the others until they cost what the first does.",
    ),
]
Curves = Annotated[
    Path | None, typer.Option("--curves", metavar="FILE.csv", help="Write validation metrics on the way there.")
]
Seeds = Annotated[int, typer.Option("--seeds", min=0, help="Train each with that many seeds; 0 only counts.")]
Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FOLDER",
        help="Keep the trained network there; an interrupted training goes on, a finished one is shown.",
    ),
]
Render = Annotated[
    Path | None,
    typer.Option("--render", metavar="FILE", help="Show there what the trained network does: FILE.gif or FILE.mp4."),
]
Measures = Annotated[
    list[str],
    typer.Option("--measure", metavar="NAME", help="Measure this of the trained network as well: conditioning."),
]
Budget = Annotated[
    list[str],
    typer.Option("--budget", help='Bounds that every trained network keeps: "params<=100k", "20M<=params<=24M".'),
]
Objectives = Annotated[
    str | None,
    typer.Option("--objectives", metavar="A,B", help="What to search for. Default: the task's metric, flops."),
]
Trials = Annotated[int, typer.Option("--trials", min=1, help="Architectures the study is to hold in all.")]
Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help='Condition on columns: "flops < 2e6 and depth > 2".')
]
Pareto = Annotated[
    str | None, typer.Option("--pareto", metavar="A,B", help="Keep the rows that nothing beats in these columns.")
]
Columns = Annotated[str | None, typer.Option("--columns", metavar="A,B", help="Columns to print, or `all`.")]
OrderBy = Annotated[
    str | None, typer.Option("--order-by", metavar="A,B", help='Columns to order by, each as NAME or "NAME desc".')
]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="How many rows to print.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print.")]
Paper = Annotated[
    str | None, typer.Option("--paper", metavar="NAME", help="Only this paper: ancre, dca, leaner or rmt.")
]
Output = Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write there instead of the terminal.")]
Profiled = Annotated[
    bool,
    typer.Option("--profile", help="First measure time, memory and energy, and keep a trace of training steps."),
]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, help="Examples of a training step. Default: as the preset has.")
]
CostBy = Annotated[
    By | None,
    typer.Option("--by", help="Instead of the sums, parameters, MACs and FLOPs of each layer, or of each operator."),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE.png", help="Where to draw the front.")]
