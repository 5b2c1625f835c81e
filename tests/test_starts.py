"""Each command loads only the heavy modules that it needs."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import nas
from grouped import grouped
from search_spaces.support.errors import Kind

HEAVY = (
    *("torch", "torch._dynamo", "torch._inductor", "sympy", "torchvision", "timm", "fvcore"),
    *("lightning", "lightning_fabric", "torchmetrics", "transformers", "huggingface_hub.hf_api", "gymnasium"),
    *("optuna", "sqlalchemy"),
    *("altair", "duckdb", "matplotlib", "numpy", "pandas", "pyarrow", "pyarrow.compute", "pydantic"),
    *("scipy", "scipy.stats", "sklearn"),
)

PROGRAM = f"""
import json, os, sys
import nas.cli.main
from search_spaces.support.errors import UserError

show, errors = nas.cli.main.show_traceback, []

def told(error):
    errors.extend([error] if isinstance(error, UserError) else [])
    show(error)

nas.cli.main.show_traceback = told
for number, command in enumerate(json.loads(sys.argv[1])):
    if os.fork():
        os.wait()
        continue
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{{number}}.{{name}}", os.O_WRONLY | os.O_CREAT), stream)
    sys.argv, status = ["nas", *command.split()], 0
    try:
        nas.cli.main.main()
    except SystemExit as end:
        status = end.code or 0
    loaded = [name for name in {HEAVY} if name in sys.modules]
    refusal = [[error.kind, error.fields] for error in errors]
    with open(f"{{number}}.json", "w") as file:
        json.dump([status, loaded, refusal], file, default=str)
    os._exit(0)
"""
"""Each command in a process forked from one that has imported only the command line."""

TABLES = Path(__file__).parents[1] / "results" / "tables"
TABLE = "results --from digits-vit-topologies"
ARROW = "pyarrow pyarrow.compute"
COMPILER = "torch torch._dynamo torch._inductor sympy"


QUICK = [
    ("--help", ""),
    ("search --help", ""),
    ("list", ""),
    ("list tasks", ""),
    ("list topologies", ""),
    ("list samplers", ""),
    ("new-task starts", ""),
    (TABLE, f"numpy {ARROW}"),
    (f"{TABLE} --where depth>1", f"duckdb numpy {ARROW}"),
]

LONGER = [
    (f"{TABLE} --by topology", f"numpy pandas {ARROW} scipy"),  # Arrow's group_by imports pandas
    ("list presets digits-vit", "torch numpy"),
    ("cost digits-vit", "torch fvcore numpy"),
    ("cost stdlib-lm", "torch fvcore numpy pyarrow"),
    (
        "evaluate digits-vit --preset smoke --set epochs=1",
        f"{COMPILER} fvcore lightning_fabric sqlalchemy numpy pandas {ARROW} scipy scipy.stats sklearn",
    ),
]

FURTHER = [
    ("effects topology --from digits-vit-topologies", f"numpy {ARROW} scipy scipy.stats"),
    ("list presets", "torch numpy pyarrow"),
    ("list presets c4-lm", "torch numpy pyarrow"),
    ("cost digits-dit", "torch fvcore numpy"),
    ("cost lra-listops", "torch fvcore numpy"),
    ("cost c4-lm", "torch fvcore numpy pyarrow"),
    ("cost stdlib-mlm", "torch fvcore numpy pyarrow"),
    ("cost imagenet-vit", "torch fvcore numpy"),
]


def test_quick_commands_load_what_they_need(tmp_path: Path) -> None:
    check_modules(QUICK, tmp_path)


@pytest.mark.outside
def test_longer_commands_load_what_they_need(tmp_path: Path) -> None:
    check_modules(LONGER, tmp_path)


@pytest.mark.slow
def test_further_commands_load_what_they_need(tmp_path: Path) -> None:
    check_modules(FURTHER, tmp_path)


def check_modules(commands: list[tuple[str, str]], folder: Path) -> None:
    with grouped() as case:
        for (command, names), (status, modules, _) in zip(commands, run(commands, folder), strict=True):
            with case(command):
                assert (status, {*modules}) == (0, {*names.split()})


@pytest.mark.outside
def test_rows_are_read_from_a_store_without_pandas_or_optuna(tmp_path: Path) -> None:
    nas.import_rows(TABLES / "digits-vit-topologies.jsonl", storage=f"sqlite:///{tmp_path}/nas-runs/studies.db")
    check_modules([("results", f"sqlalchemy numpy {ARROW}")], tmp_path)


MISTAKES: list[tuple[str, Kind, dict[str, Any]]] = [
    ("search digits-vitt", "unknown-name", {"option": "task", "nearest": "digits-vit"}),
    ("search digits-vit --budget parms<=1", "unknown-name", {"option": "budget quantity", "nearest": "params"}),
    ("search digits-vit --sampler tpee", "unknown-name", {"option": "sampler", "nearest": "tpe"}),
    ("audit digits-vit --seeds -1", "out-of-range", {"option": "--seeds", "value": -1}),
    ("search digits-vit --trial-memory some", "bad-syntax", {"option": "--trial-memory", "value": "some"}),
    ("compare digits-vit --set lr", "bad-syntax", {"option": "--set", "value": "lr"}),
    ("compare digits-vit --topology all,resnett", "unknown-name", {"option": "topology", "nearest": "resnet"}),
    ("compare digits-vit --match flop", "unknown-name", {"option": "--match", "nearest": "flops"}),
    ("evaluate digits-vit --topology resnett", "unknown-name", {"option": "topology", "nearest": "resnet"}),
    ("show digits-vit --topology dca/resnett", "unknown-name", {"option": "topology", "nearest": "resnet"}),
]


def test_invalid_options_are_refused_before_heavy_modules_load(tmp_path: Path) -> None:
    with grouped() as case:
        for (command, kind, fields), outcome in zip(MISTAKES, run(MISTAKES, tmp_path), strict=True):
            with case(command):
                status, modules, [(actual_kind, actual_fields)] = outcome
                assert (status, actual_kind, {**actual_fields, **fields}) == (2, kind, actual_fields)
                assert {*modules} <= {"sqlalchemy"}  # to parse a URL


def run(commands: Sequence[tuple[Any, ...]], folder: Path) -> list[Any]:
    """Exit status, heavy modules and errors of each command."""
    words = [sys.executable, "-c", PROGRAM, json.dumps([command for command, *_ in commands])]
    subprocess.run(words, check=True, cwd=folder)
    return [json.loads((folder / f"{number}.json").read_text()) for number in range(len(commands))]
