"""The command line as its user meets it: what it prints, and how it says no."""

import csv
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest
import typer

from nas import __version__
from nas.cli import main
from nas.door_command import command
from nas.provenance import without_passwords
from nas.storage.store import Store
from search_spaces.catalog import SPACES
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASKS
from toy_rows import a_row

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
    assert "of 5 architectures on the front of mine (max accuracy, min flops; no budget)" in out
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

    assert nas("results", "-o", "rows.parquet")[0] == 0
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 6
    assert nas("results", "-o", "rows.CSV")[0] == 0
    assert len((tmp_path / "rows.CSV").read_text().splitlines()) == 7
    assert nas("results", "--format", "json", "-o", "rows.csv.bak")[0] == 0
    assert len(json.loads((tmp_path / "rows.csv.bak").read_text())) == 6
    status, _, err = nas("results", "--format", "json", "-o", "rows.csv")
    assert (status, err) == (2, "nas: --format json and --output rows.csv are two forms. Leave --format out.\n")
    status, _, err = nas("results", "-o", "rows.txt")
    assert (status, err) == (
        2,
        "nas: a file is .csv, .json, .jsonl or .parquet, got --output rows.txt. For another name give --format csv.\n",
    )

    status, out, _ = nas(
        "results", "--order-by", "accuracy desc", "--limit", "1", "--columns", "accuracy", "--format", "json"
    )
    assert json.loads(out) == [{"accuracy": max(one["accuracy"] for one in front)}]


def test_rows_of_several_kinds_in_one_table_are_remarked_on(nas: Nas) -> None:
    nas("search", TOY, "--trials", "2", "--study", "s", "--preset", "smoke")
    assert "note:" not in nas("results")[2]
    nas("evaluate", TOY, "--preset", "smoke", "--seed", "3")
    assert "note: toy: 2 values of seed" in nas("results", "--study", "all")[2]


def test_reasons_are_shown_where_a_row_that_was_asked_for_failed(nas: Nas) -> None:
    store = Store("sqlite:///nas-runs/studies.db", make=True)
    store.add(a_row(), "s")
    store.add(a_row(status="failed", seed=1, error="too bad", metrics={}), "s")
    assert "too bad" in nas("results")[1]
    assert "error" in nas("results", "--where", "seed = 1")[1]
    assert "error" not in nas("results", "--where", "seed = 0")[1]


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


def test_rows_of_all_commands_are_asked_together_and_leave_without_loss(nas: Nas, tmp_path: Path) -> None:
    assert nas("search", TOY, "--trials", "3", "--preset", "smoke", "--study", "s", "--set", "penalty=0.02")[0] == 0
    assert nas("evaluate", TOY, "--preset", "smoke")[0] == 0
    assert nas("compare", TOY, "--preset", "smoke", "--seeds", "2", "--arch", "depth=2")[0] == 0
    records = json.loads(nas("results", "--study", "all", "--format", "json")[1])
    assert len(records) == 3 + 1 + 2
    assert sorted({record["recipe_penalty"] for record in records}) == [0.01, 0.02]
    words = ("results", "--study", "s,evaluations", "--where", "recipe_penalty < 0.015", "--format", "jsonl")
    assert nas(*words, "--output", "rows.jsonl")[0] == 0
    status, out, _ = nas("results", "--from", "rows.jsonl", "--format", "jsonl")
    assert status == 0
    assert out == (tmp_path / "rows.jsonl").read_text()
    assert len(out.splitlines()) == 3


def test_a_bad_row_is_named_and_the_others_are_shown(nas: Nas, tmp_path: Path) -> None:
    nas("compare", TOY, "--preset", "smoke", "--seeds", "2")
    nas("results", "--study", "evaluations", "--format", "jsonl", "--output", "rows.jsonl")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    (tmp_path / "rows.jsonl").write_text("\n".join((lines[0], '{"task": 7}', lines[1])))
    status, out, err = nas("results", "--from", "rows.jsonl", "--format", "json")
    assert status == 0
    assert len(json.loads(out)) == 2
    assert "line 2" in err


def test_a_network_of_the_front_is_exported(nas: Nas, tmp_path: Path) -> None:
    showing = TOY.replace("Toy", "Showing")
    nas("search", showing, "--trials", "4", "--preset", "smoke", "--study", "s")
    keys = [one["key"] for one in json.loads(nas("results", "--format", "json")[1])]
    front = json.loads(nas("results", "--pareto", "accuracy,flops", "--format", "json")[1])
    key = next(one["key"] for one in front if keys.count(one["key"]) == 1)
    status, _, err = nas("export", "s", key, "--to", "network.safetensors")
    assert status == 2
    assert "--task" in err  # what a store says of itself runs no code
    status, out, err = nas("export", "s", key[:6], "--to", "network.safetensors", "--task", showing)
    assert status == 0, err
    assert "gives the same to the bit" in out
    assert (tmp_path / "network.safetensors").exists()
    status, _, err = nas("export", "s", "fffffff", "--to", "network.pt2", "--task", showing)
    assert (status, len(err.splitlines())) == (2, 1)


def test_the_version_and_help_have_their_usual_flags(nas: Nas) -> None:
    assert nas("--version") == (0, f"nas {__version__}\n", "")
    for flag in ("-h", "--help"):
        status, out, _ = nas("search", flag)
        assert (status, "--budget" in out) == (0, True)


def test_quiet_says_nothing_but_results_and_errors(nas: Nas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_QUIET", "")  # so that it is put back
    words = ("search", TOY, "--preset", "smoke", "--budget", "params<=3k", "--trials", "2", "--confirm", "0")
    _, _, said = nas(*words)
    assert "2/2" in said
    status, out, err = nas("--quiet", *words, "--seed", "1")
    assert (status, err) == (0, "")
    assert len(out.splitlines()) > 3
    _, _, err = nas("-q", "search", TOY.replace("Toy", "Stumbling"), *words[2:])
    assert "toy_tasks.py, line" in err
    assert "study" not in err


def test_debug_shows_the_traceback_of_what_is_told_in_a_line(nas: Nas, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("evaluate", TOY.replace("Toy", "Stumbling"), "--arch", "depth=1", "--preset", "smoke")
    _, _, err = nas(*words)
    assert "Traceback" not in err
    assert "toy_tasks.py, line" in err
    monkeypatch.setenv("NAS_DEBUG", "")  # so that it is put back
    status, _, err = nas("--debug", *words)
    assert status == 2
    assert "Traceback" in err


def test_an_error_in_a_plugins_code_is_one_line_with_its_place(nas: Nas, tmp_path: Path) -> None:
    text = Path(TOY.rpartition(":")[0]).read_text().replace("inner = architecture.heads", "inner = architecture.haeds")
    (tmp_path / "theirs.py").write_text(text.replace('name = "toy"', 'name = "theirs"'))
    status, _, err = nas("cost", "theirs.py:Toy")
    assert status == 2
    assert "theirs.py, line" in err
    assert len(err.strip().splitlines()) == 1


def test_passwords_are_in_no_row(nas: Nas, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_passwords("nas --storage postgresql://u:secret@h/d?password=secret") == (
        "nas --storage postgresql://u:***@h/d?password=***"
    )


@pytest.mark.parametrize(
    "words", [("cost", "digits-vit", "--format", "jsonl"), ("evaluate", TOY, "--format", "csv", "--output", "no/x.csv")]
)
def test_what_could_not_be_printed_is_said_before_the_work(nas: Nas, words: tuple[str, ...]) -> None:
    status, _, err = nas(*words)
    assert status == 2
    assert len(err.strip().splitlines()) == 1
    assert not Path("nas-runs").exists()


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
        (["evaluate", "digits-vit", "--measure", "condition"], "conditioning"),
        (["results"], "no study"),
        (["front", "--study", "nothing"], "no study"),
        (["results", "--storage", "mysql+nodriver://x/y"], "mysql"),
        (["results", "--limti", "1"], "No such option: --limti (Possible options: --limit). `nas results --help`"),
        (["results", "--limit", "many"], "'--limit': 'many' is not a valid int"),
        (["results", "--format", "xml"], "'--format': 'xml' is not one of 'table'"),
        (["results", "--best"], "'--best' requires an argument. `nas --help`"),
        (["reslts"], "No such command 'reslts'. Did you mean 'results'? `nas --help`"),
        (["front", "nothing"], "unexpected extra argument(s) (nothing)"),
        (["reproduce"], "'WHAT'. Choose from: params, flops"),
        (
            ["list", "tasks", "digits-vit"],
            "`nas list presets digits-vit`",
        ),
        (["dashboard", "--port", "x"], "'--port'"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    nas: Nas, words: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAS_QUIET", "1")  # no line of progress where counting takes its time
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
    assert len(done.stderr.splitlines()) == 1


def test_without_a_word_it_prints_its_help_alone(nas: Nas) -> None:
    status, out, err = nas()
    assert (status, err) == (2, "")
    assert "search" in out


@pytest.mark.parametrize(("words", "status"), [(["list", "tasks"], 0), (["list", "what"], 2), (["what"], 2)])
def test_where_a_thread_waits_for_ever_the_end_does_not(words: list[str], status: int) -> None:
    program = (
        "import atexit, sys\nfrom nas.cli import main\nfrom nas.workers.left_behind import LEFT_BEHIND\n"
        f"atexit.register(print, 'it waits')\nLEFT_BEHIND.append(None)\nsys.argv = ['nas', *{words}]\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, "it waits" in done.stdout, bool(done.stdout)) == (status, False, status == 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_is_asked_to_end_says_so_and_only_what_trains_says_that_it_goes_on(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, status: int
) -> None:
    def asks(study: str, storage: str) -> None:
        signal.raise_signal(number)

    def trains(preset: str, storage: str) -> None:
        signal.raise_signal(number)

    def checks(**given: str) -> None:
        signal.raise_signal(number)

    for run, said in (
        (command(asks, lambda found: None), "."),
        (command(trains, lambda found: None), "; the same command goes on from here."),
        (command(trains, lambda found: None, checks), "; the same command goes on from here."),
    ):
        with pytest.raises(typer.Exit) as end:
            run(None, study="s", storage="x", preset="smoke", save_config=None)
        assert end.value.exit_code == status
        assert capsys.readouterr().err == f"nas: ended by {number.name}{said}\n"


def test_a_front_says_how_many_trainings_failed(nas: Nas) -> None:
    nas("search", TOY, "--trials", "2", "--study", "s", "--preset", "smoke")
    assert "failed" not in nas("front", "--study", "s")[1]
    with closing(Store("sqlite:///nas-runs/studies.db", make=True)) as store:
        store.add(replace(store.read(["s"]).rows[0], status="failed", error="it broke", metrics={}, seed=77), "s")
    said = "1 of 3 evaluations failed, the first with: it broke; another --study than s tries them again"
    assert said in nas("front", "--study", "s")[1]


def test_a_topology_is_listed_with_what_its_options_mean(nas: Nas) -> None:
    status, out, _ = nas("list", "topologies", "attnres(heads=2)")
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    said = {line[0]: line[1] for line in lines if len(line) > 1}
    assert status == 0
    assert said["attnres(heads=2)"].startswith("Attention residuals (Kimi Team, 2026)")
    assert said["heads=2"].startswith("Into how many groups the features are divided")  # said where it is inherited
    assert said["scaled=true"].startswith("Whether a mix is multiplied")
    assert nas("list", "topologies", "attnress")[0] == 2
