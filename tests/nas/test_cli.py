"""The command line as its user meets it: what it prints, and how it says no."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from nas.cli import main
from search_spaces.catalog import SPACES
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.base import TASKS

TOY = f"{Path(__file__).parent / 'toy_tasks.py'}:Toy"
Nas = Callable[..., tuple[int, str, str]]


@pytest.fixture
def nas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Nas:
    """Run `nas` in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["nas", *words])
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_a_search_prints_its_front_and_draws_it_and_can_be_asked_again(nas: Nas, tmp_path: Path) -> None:
    status, out, _ = nas("search", TOY, "--trials", "6", "--preset", "smoke", "--study", "mine", "--plot", "front.png")
    assert status == 0
    assert "mine: front of 6 architectures (max accuracy, min flops; no budget)" in out
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")

    assert nas("front")[0] == 0
    assert (tmp_path / "nas-runs" / "mine-front.png").exists()

    status, out, _ = nas("results", "--where", "depth >= 1", "--format", "csv")
    assert status == 0
    assert len(list(csv.DictReader(io.StringIO(out)))) == 6

    status, out, _ = nas("results", "--pareto", "accuracy,flops", "--format", "json")
    front = json.loads(out)
    assert 0 < len(front) <= 6
    for one in front:
        assert not any(other["accuracy"] > one["accuracy"] and other["flops"] <= one["flops"] for other in front)

    assert nas("results", "--format", "parquet", "--output", "rows.parquet")[0] == 0
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 6

    status, out, _ = nas(
        "results", "--order-by", "accuracy desc", "--limit", "1", "--columns", "accuracy", "--format", "json"
    )
    assert json.loads(out) == [{"accuracy": max(one["accuracy"] for one in front)}]


def test_rows_of_several_kinds_in_one_table_are_remarked_on(nas: Nas) -> None:
    nas("search", TOY, "--trials", "2", "--study", "s", "--preset", "smoke")
    assert "note:" not in nas("results")[2]


def test_list_names_everything_that_is_installed(nas: Nas) -> None:
    status, out, _ = nas("list")
    assert status == 0
    for name in (*TASKS.names(), *SPACES.names(), *TOPOLOGIES.names()):
        assert name in out
    assert "broken" not in out


def test_list_names_presets_and_studies(nas: Nas) -> None:
    assert "digits-vit smoke" in nas("list", "presets")[1]
    nas("search", TOY, "--trials", "1", "--study", "mine", "--preset", "smoke")
    assert "mine" in nas("list", "studies")[1]


def test_cost_counts_without_training(nas: Nas) -> None:
    status, out, _ = nas("cost", "digits-vit", "--arch", "depth=3,heads=5,topology=dca(k=2)", "--format", "json")
    assert status == 0
    (record,) = json.loads(out)
    assert record["flops"] == 2 * record["macs"] > 0
    assert record["topology"] == "dca(k=2)"
    assert "parameters" not in record


@pytest.mark.parametrize(("by", "first"), [("layer", "part"), ("operator", "operator")])
def test_cost_by_parts_prints_a_table_or_every_digit(nas: Nas, by: str, first: str) -> None:
    whole = json.loads(nas("cost", "digits-vit", "--format", "json")[1])[0]
    records = json.loads(nas("cost", "digits-vit", "--by", by, "--format", "json")[1])
    assert first in records[0]
    for column in ("params", "macs", "flops"):
        assert sum(record[column] for record in records) == whole[column]
    status, out, _ = nas("cost", "digits-vit", "--by", by)
    assert status == 0
    assert f"{whole['flops']:,} flops" in out


def test_evaluate_prints_the_row(nas: Nas) -> None:
    status, out, _ = nas("evaluate", TOY, "--arch", "depth=2", "--preset", "smoke", "--format", "json")
    assert status == 0
    (record,) = json.loads(out)
    assert (record["task"], record["depth"], record["status"]) == ("toy", 2, "complete")


def test_a_failed_evaluation_is_printed_and_then_said(nas: Nas) -> None:
    status, out, err = nas("evaluate", TOY.replace("Toy", "Stumbling"), "--arch", "depth=1", "--preset", "smoke")
    assert status == 2
    assert "failed" in out
    assert "RuntimeError: a layer broke" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["search", "digits-vti"], "digits-vit"),
        (["search", "digits-vit", "--space", "jont"], "joint"),
        (["search", "digits-vit", "--budget", "params<=lots"], "100k"),
        (["search", "digits-vit", "--budget", "params<=5"], "smallest"),
        (["search", "digits-vit", "--objectives", "flop"], "flops"),
        (["search", "digits-vit", "--preset", "quick"], "smoke"),
        (["search", "digits-vit", "--sampler", "tpo"], "tpe"),
        (["search", "digits-vit", "--arch", "topology=resnett"], "resnet"),
        (["search", "digits-vit", "--arch", "topology=dca(j=2)"], "k"),
        (["evaluate", "digits-vit", "--arch", "depth=x"], "integer"),
        (["evaluate", "digits-vit", "--arch", "width=30,topology=rmt(keys=16)"], "divide"),
        (
            ["search", "digits-vit", "--space", "timm:xcit_nano_12_p16_224"],
            "takes none of timm's",
        ),
        (["search", "digits-vit", "--space", "timm:resnet50"], "whose depth and heads cannot be set"),
        (["search", "digits-vit", "--space", "timm:xcit_nano_12_p16_224", "--arch", "depth=3"], "a base of its own"),
        (["cost", "digits-vit", "--arch", "topology=dca(k=0)"], "at least 1"),
        (["cost", "digits-vit", "--by", "layer", "--profile"], "Give one of them"),
        (["evaluate", "digits-vit", "--measure", "condition"], "conditioning"),
        (["results"], "no study"),
        (["front", "--study", "nothing"], "no study"),
        (["results", "--storage", "mysql+nodriver://x/y"], "mysql"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(nas: Nas, words: list[str], says: str) -> None:
    status, _, err = nas(*words)
    assert status == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("nas: ")


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("flop < 1", "flops"),
        ("read_csv('/etc/passwd') is null", "read_csv"),
        ("depth <", ""),
        ("1; drop table rows", ""),
    ],
)
def test_a_wrong_condition_is_one_line_and_status_2(nas: Nas, condition: str, says: str) -> None:
    nas("search", TOY, "--trials", "1", "--study", "s", "--preset", "smoke")
    status, out, err = nas("results", "--where", condition)
    assert (status, out) == (2, "")
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_a_table_does_not_go_to_a_file(nas: Nas) -> None:
    nas("search", TOY, "--trials", "1", "--study", "s", "--preset", "smoke")
    status, _, err = nas("results", "--output", "rows.txt")
    assert status == 2
    assert "--format" in err


def test_an_option_value_that_is_none_is_status_2_without_a_traceback(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("nas")), "search", "digits-vit", "--trials", "many"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "--trials" in done.stderr
    assert "Traceback" not in done.stderr
