"""Which heavy modules each command loads: what is not needed for an answer is not waited for."""

import subprocess
import sys
from pathlib import Path

import pytest

import nas

HEAVY = (
    *("torch", "torch._dynamo", "torch._inductor", "sympy", "torchvision", "timm", "fvcore"),
    *("lightning", "lightning_fabric", "torchmetrics", "transformers", "huggingface_hub.hf_api", "gymnasium"),
    *("optuna", "sqlalchemy"),
    *("altair", "duckdb", "matplotlib", "numpy", "pandas", "pyarrow", "pyarrow.compute", "pydantic"),
    *("scipy", "scipy.stats", "sklearn"),
)

PROGRAM = f"""
import sys
import nas.cli
status, sys.argv = int(sys.argv[1]), ["nas", *sys.argv[2:]]
try:
    nas.cli.main()
except SystemExit as end:
    assert (end.code or 0) == status, end.code
sys.stderr.write("loaded: " + " ".join(name for name in {HEAVY} if name in sys.modules))
"""

TABLES = Path(__file__).parents[1] / "results" / "tables"
TABLE = "results --from digits-vit-topologies"
ARROW = "pyarrow pyarrow.compute"
COMPILER = "torch torch._dynamo torch._inductor sympy"


WITHOUT_TORCH = [
    ("--help", ""),
    ("search --help", ""),
    ("list", ""),
    ("list tasks", ""),
    ("list topologies", ""),
    ("list samplers", ""),
    ("new-task starts", ""),
    (TABLE, f"numpy {ARROW}"),
    (f"{TABLE} --by topology", f"numpy pandas {ARROW} scipy"),  # of which Arrow's groups take pandas
    (f"{TABLE} --where depth>1", f"duckdb numpy {ARROW}"),
    ("effects topology --from digits-vit-topologies", f"numpy {ARROW} scipy scipy.stats"),
]

WITH_TORCH = [
    ("list presets", "torch numpy pyarrow"),
    ("list presets digits-vit", "torch numpy"),
    ("list presets c4-lm", "torch numpy pyarrow"),
    ("cost digits-vit", "torch fvcore numpy"),
    ("cost digits-dit", "torch fvcore numpy"),
    ("cost lra-listops", "torch fvcore numpy"),
    ("cost c4-lm", "torch fvcore numpy pyarrow"),
    ("cost stdlib-lm", "torch fvcore numpy pyarrow"),
    ("cost stdlib-mlm", "torch fvcore numpy pyarrow"),
    ("cost imagenet-vit", "torch fvcore numpy"),
    (
        "evaluate digits-vit --preset smoke --set epochs=1",
        f"{COMPILER} fvcore lightning_fabric sqlalchemy numpy pandas {ARROW} scipy scipy.stats sklearn",
    ),
]


@pytest.mark.parametrize(
    ("command", "loaded"),
    [*WITHOUT_TORCH, *(pytest.param(*case, marks=pytest.mark.outside) for case in WITH_TORCH)],
)
def test_a_command_loads_what_it_needs(command: str, loaded: str, tmp_path: Path) -> None:
    assert {*run(command, 0, tmp_path)[1]} == {*loaded.split()}


@pytest.mark.outside
def test_rows_of_a_store_are_read_without_pandas_or_optuna(tmp_path: Path) -> None:
    nas.import_rows(TABLES / "digits-vit-topologies.jsonl", storage=f"sqlite:///{tmp_path}/nas-runs/studies.db")
    assert {*run("results", 0, tmp_path)[1]} == {"sqlalchemy", "numpy", *ARROW.split()}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("search digits-vitt", "unknown task 'digits-vitt'. Did you mean 'digits-vit'?"),
        ("search digits-vit --budget parms<=1", "unknown budget quantity 'parms'. Did you mean 'params'?"),
        ("search digits-vit --sampler tpee", "unknown sampler 'tpee'. Did you mean 'tpe'?"),
        ("audit digits-vit --seeds -1", "--seeds must be a whole number of at least 0, got -1."),
        ("search digits-vit --trial-memory some", "--trial-memory must be"),
        ("compare digits-vit --set lr", "--set is FIELD=VALUE,..., got 'lr'."),
        ("compare digits-vit --topology all,resnett", "unknown topology 'resnett'. Did you mean 'resnet'?"),
        ("compare digits-vit --match flop", "unknown --match 'flop'. Did you mean 'flops'?"),
        ("evaluate digits-vit --topology resnett", "unknown topology 'resnett'. Did you mean 'resnet'?"),
        ("show digits-vit --topology dca/resnett", "unknown topology 'resnett'. Did you mean 'resnet'?"),
    ],
)
def test_a_mistake_that_the_text_tells_is_told_before_anything_is_loaded(
    command: str, said: str, tmp_path: Path
) -> None:
    told, loaded = run(command, 2, tmp_path)
    assert told.startswith(f"nas: {said}")
    assert {*loaded} <= {"sqlalchemy"}  # which reads a URL


def run(command: str, status: int, folder: Path) -> tuple[str, list[str]]:
    """What a command says that ends so, and which heavy modules it loads."""
    words = [sys.executable, "-c", PROGRAM, str(status), *command.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder)
    said, _, loaded = done.stderr.rpartition("loaded: ")
    return said, loaded.split()
