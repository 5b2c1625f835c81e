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
sys.argv = ["nas", *sys.argv[1:]]
try:
    nas.cli.main()
except SystemExit as end:
    assert not end.code, end.code
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
    words = [sys.executable, "-c", PROGRAM, *command.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr.rpartition("loaded: ")[2].split() == loaded.split()
