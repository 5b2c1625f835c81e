"""Which heavy modules each command loads: what is not needed for an answer is not waited for."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    *("torch", "torch._dynamo", "torchvision", "timm", "lightning", "lightning_fabric", "torchmetrics", "transformers"),
    *("optuna", "sqlalchemy"),
    *("altair", "duckdb", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "scipy", "sklearn"),
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

TRAINED = "torch torch._dynamo lightning_fabric sqlalchemy numpy pandas pyarrow scipy sklearn"
TABLE = "results --from digits-vit-topologies"


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ("--help", ""),
        ("search --help", ""),
        ("list", ""),
        ("list samplers", ""),
        ("new-task starts", ""),
        ("list presets digits-vit", "torch numpy"),
        (TABLE, "numpy pyarrow"),
        (f"{TABLE} --by topology", "numpy pandas pyarrow scipy"),  # of which Arrow's groups take pandas
        (f"{TABLE} --where depth>1", "duckdb numpy pyarrow"),
        ("effects topology --from digits-vit-topologies", "numpy pyarrow scipy"),
        ("cost digits-vit", "torch numpy"),
        ("cost stdlib-lm", "torch numpy pyarrow"),
        ("evaluate digits-vit --preset smoke --set epochs=1", TRAINED),
        ("cost imagenet-vit", "torch torch._dynamo torchvision timm numpy"),
    ],
)
def test_a_command_loads_what_it_needs(command: str, loaded: str, tmp_path: Path) -> None:
    assert run(command, 0, tmp_path)[1] == loaded.split()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("search digits-vitt", "unknown task 'digits-vitt'. Did you mean 'digits-vit'?"),
        ("search digits-vit --budget parms<=1", "unknown budget quantity 'parms'. Did you mean 'params'?"),
        ("search digits-vit --sampler tpee", "unknown sampler 'tpee'. Did you mean 'tpe'?"),
        ("audit digits-vit --seeds -1", "--seeds must be a whole number of at least 0, got -1."),
        ("search digits-vit --trial-memory some", "--trial-memory must be"),
        ("compare digits-vit --set lr", "--set is FIELD=VALUE,..., got 'lr'."),
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
