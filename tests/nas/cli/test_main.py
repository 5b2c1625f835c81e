"""The command line: its output and its errors."""

import csv
import io
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet

from command_line import Command
from grouped import grouped
from nas import __version__
from nas.environment.provenance import without_passwords
from nas.store.store import Store
from results.records.sources import table_paths, table_summaries
from search_spaces.spaces.catalog import SPACES
from search_spaces.support.errors import Kind
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASKS
from toy_rows import a_row
from toy_searches import STORE, TOY


def test_search_prints_its_front_and_results_can_query_it(command: Command, tmp_path: Path) -> None:
    words = ("--space", "depth-heads", "--trials", "6", "--preset", "smoke", "--study", "mine", "--plot", "front.png")
    result = command("search", TOY, *words)
    assert result.returncode == 0
    rows = json.loads(command("results", "--format", "json").stdout)
    assert len(rows) == 6
    architectures = len({row["key"] for row in rows})
    assert all(token in result.stdout for token in (f"of {architectures} ", "mine", "max accuracy", "min flops"))
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert "mine" in command("list", "studies").stdout

    result = command("front")
    assert result.returncode == 0
    assert "failed" not in result.stdout
    assert (tmp_path / "nas-runs" / "mine-front.png").exists()

    result = command("results", "--where", "depth >= 1", "--format", "csv")
    assert result.returncode == 0
    assert len(list(csv.DictReader(io.StringIO(result.stdout)))) == 6

    front = json.loads(command("results", "--pareto", "accuracy,flops", "--format", "json").stdout)
    assert 0 < len(front) <= 6
    for row in front:
        assert not any(other["accuracy"] > row["accuracy"] and other["flops"] <= row["flops"] for other in front)
    words = ("--order-by", "accuracy desc", "--limit", "1", "--columns", "accuracy", "--format", "json")
    assert json.loads(command("results", *words).stdout) == [{"accuracy": max(row["accuracy"] for row in front)}]

    assert command("results", "-o", "rows.parquet").returncode == 0
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 6
    assert command("results", "-o", "rows.CSV").returncode == 0
    assert len((tmp_path / "rows.CSV").read_text().splitlines()) == 7
    assert command("results", "--format", "json", "-o", "rows.csv.bak").returncode == 0
    assert len(json.loads((tmp_path / "rows.csv.bak").read_text())) == 6

    with grouped() as case:
        for words, kind, fields in MISTAKES_ABOUT_ROWS:
            with case(" ".join(words)):
                answer = command("results", *words)
                answer.assert_error(kind, **fields)
                assert answer.stdout == ""

    with closing(Store(STORE, make=True)) as store:
        store.add(replace(store.read(["mine"]).rows[0], status="failed", error="it broke", metrics={}, seed=77), "mine")
    out = " ".join(command("front", "--study", "mine").stdout.split())
    assert all(token in out for token in ("1 of 7 ", "failed", "it broke", "--study"))


MISTAKES_ABOUT_ROWS: list[tuple[tuple[str, ...], Kind, dict[str, Any]]] = [
    (("--format", "json", "-o", "rows.csv"), "conflict", {"option": "--format", "path": "rows.csv"}),
    (("-o", "rows.txt"), "unsupported", {"path": "rows.txt"}),
    (("--output", "rows.txt"), "unsupported", {"path": "rows.txt"}),
    (("--where", "flop < 1"), "unknown-name", {"option": "column", "value": "flop", "nearest": "flops"}),
    (("--where", "read_csv('/etc/passwd') is null"), "unknown-name", {"option": "function", "value": "read_csv"}),
    (("--where", "depth <"), "bad-syntax", {"option": "--where"}),
    (("--where", "1; drop table rows"), "bad-syntax", {"option": "--where", "part": ";"}),
    (("--study", "all,s"), "conflict", {"option": "--study", "value": "all,s"}),
]


def test_values_that_differ_between_rows_give_a_note(command: Command) -> None:
    store = Store(STORE, make=True)
    for seed in (0, 1):
        store.add(a_row(seed=seed), f"s{seed}")
    assert command("results", "--study", "s0").stderr == ""
    (note,) = command("results", "--study", "all").stderr.splitlines()
    assert all(token in note for token in ("any", " 2 ", "seed"))


def test_results_give_the_reason_of_a_failure(command: Command) -> None:
    store = Store(STORE, make=True)
    store.add(a_row(), "s")
    store.add(a_row(status="failed", seed=1, error="too bad", metrics={}), "s")
    assert "too bad" in command("results").stdout
    assert "error" in command("results", "--where", "seed = 1").stdout
    assert "error" not in command("results", "--where", "seed = 0").stdout


def test_list_names_every_plugin(command: Command) -> None:
    result = command("list")
    assert result.returncode == 0
    for name in (*TASKS.names(), *SPACES.names(), *TOPOLOGIES.names()):
        assert name in result.stdout
    for registry in (TASKS, SPACES, TOPOLOGIES):
        assert all(registry.description(name) for name in registry.names())  # each can be loaded
    assert "digits-vit smoke" in command("list", "presets").stdout


def test_list_says_what_each_table_answers(command: Command) -> None:
    result = command("list", "tables")
    assert result.returncode == 0
    for name in table_paths():
        assert name in result.stdout
    assert table_summaries()["digit-ranks-vit"].rows == 900
    assert (table_summaries()["stdlib-lm-topologies"].task, table_summaries()["stdlib-lm-topologies"].preset) == (
        "stdlib-lm",
        "proxy",
    )


def test_list_explains_the_options_of_a_topology(command: Command) -> None:
    result = command("list", "topologies", "attnres(heads=2)")
    assert result.returncode == 0
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    meanings = {line[0]: line[1] for line in lines if len(line) > 1}
    # the base class explains scaled
    assert all(len(meanings[name].split()) > 3 for name in ("attnres(heads=2)", "heads=2", "scaled=true"))
    command("list", "topologies", "attnress").assert_error("unknown-name", value="attnress", nearest="attnres")


def test_cost_counts_without_training(command: Command) -> None:
    result = command("cost", "digits-vit", "--arch", "depth=3,heads=5,topology=dca(k=2)", "--format", "json")
    assert result.returncode == 0
    (record,) = json.loads(result.stdout)
    assert record["flops"] == 2 * record["macs"] > 0
    assert record["topology"] == "dca(k=2)"
    assert "parameters" not in record
    screen = command("cost", "digits-vit", "--arch", "depth=3,heads=5,topology=dca(k=2)").stdout
    assert ["params", f"{record['params'] / 1000:.3g}k"] in [line.split() for line in screen.splitlines()]


def test_cost_by_layer_and_by_operator(command: Command) -> None:
    total = json.loads(command("cost", "digits-vit", "--format", "json").stdout)[0]
    for by, first in (("layer", "part"), ("operator", "operator")):
        records = json.loads(command("cost", "digits-vit", "--by", by, "--format", "json").stdout)
        assert first in records[0]
        for column in ("params", "macs", "flops"):
            assert sum(record[column] for record in records) == total[column]
        result = command("cost", "digits-vit", "--by", by)
        assert result.returncode == 0
        assert f"{total['flops']:,} flops" in result.stdout


def test_rows_of_all_commands_are_queried_together_and_exported_without_loss(command: Command, tmp_path: Path) -> None:
    words = ("--space", "depth-heads", "--trials", "3", "--preset", "smoke", "--study", "s", "--set", "penalty=0.02")
    assert command("search", TOY, *words).returncode == 0
    result = command("evaluate", TOY, "--preset", "smoke", "--format", "json")
    (record,) = json.loads(result.stdout)
    assert (result.returncode, record["task"], record["depth"], record["status"]) == (0, "toy", 4, "complete")
    assert command("compare", TOY, "--preset", "smoke", "--seeds", "2", "--arch", "depth=2").returncode == 0
    records = json.loads(command("results", "--study", "all", "--format", "json").stdout)
    assert len(records) == 3 + 1 + 2
    assert sorted({record["recipe_penalty"] for record in records}) == [0.01, 0.02]
    words = ("--study", "s,evaluations", "--where", "recipe_penalty < 0.015", "--format", "jsonl")
    assert command("results", *words, "--output", "rows.jsonl").returncode == 0
    result = command("results", "--from", "rows.jsonl", "--format", "jsonl")
    assert result.returncode == 0
    text = (tmp_path / "rows.jsonl").read_text()
    assert result.stdout == text
    lines = text.splitlines()
    assert len(lines) == 3

    (tmp_path / "rows.jsonl").write_text("\n".join((lines[0], '{"task": 7}', lines[1])))
    result = command("results", "--from", "rows.jsonl", "--format", "json")
    assert result.returncode == 0
    assert len(json.loads(result.stdout)) == 2
    assert "line 2" in result.stderr


def test_export_writes_a_network_of_the_front(command: Command, tmp_path: Path) -> None:
    task = TOY.replace("Toy", "Showing")
    command("search", task, *"--space depth-heads --sampler random --trials 4 --preset smoke --study s".split())
    keys = [record["key"] for record in json.loads(command("results", "--format", "json").stdout)]
    front = json.loads(command("results", "--pareto", "accuracy,flops", "--format", "json").stdout)
    key = next(record["key"] for record in front if keys.count(record["key"]) == 1)
    error = command("export", "s", key, "--to", "network.safetensors").assert_error("missing-value", option="--task")
    assert "--task" in str(error)  # a store's word runs no code
    result = command("export", "s", key[:6], "--to", "network.safetensors", "--task", task)
    assert result.returncode == 0, result.stderr
    assert "network.safetensors" in result.stdout
    assert (tmp_path / "network.safetensors").exists()
    command("export", "s", "fffffff", "--to", "network.pt2", "--task", task).assert_error(
        "unknown-name", value="fffffff"
    )


def test_version_and_help(command: Command) -> None:
    result = command("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"nas {__version__}\n", "")
    for flag in ("-h", "--help"):
        result = command("search", flag)
        assert (result.returncode, "--budget" in result.stdout) == (0, True)
    result = command()
    assert (result.returncode, result.stderr) == (2, "")
    assert "search" in result.stdout


def test_quiet_prints_only_results_and_errors(command: Command) -> None:
    words = "--preset smoke --space depth-heads --sampler random --trials 2 --reeval-fraction 0".split()
    loud = command("search", TOY, *words).stderr
    assert all(token in loud for token in ("2/2", "study"))
    result = command("--quiet", "search", TOY, *words, "--seed", "1")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) > 3
    result = command("-q", "search", TOY.replace("Toy", "Stumbling"), *words)
    assert "toy_tasks.py, line" in result.stderr
    assert "study" not in result.stderr


def test_a_failed_evaluation_is_printed_and_debug_shows_its_traceback(command: Command) -> None:
    words = ("evaluate", TOY.replace("Toy", "Stumbling"), "--arch", "depth=1", "--preset", "smoke")
    result = command(*words)
    assert result.returncode == 2
    assert "failed" in result.stdout
    assert "RuntimeError: a layer broke" in result.stderr
    assert "Traceback" not in result.stderr
    assert "toy_tasks.py, line" in result.stderr
    result = command("--debug", *words)
    assert result.returncode == 2
    assert "Traceback" in result.stderr


def test_an_error_in_a_plugin_is_one_line_with_its_place(command: Command, tmp_path: Path) -> None:
    text = Path(TOY.rpartition(":")[0]).read_text().replace("inner = architecture.heads", "inner = architecture.haeds")
    (tmp_path / "theirs.py").write_text(text.replace('name = "toy"', 'name = "theirs"'))
    result = command("cost", "theirs.py:Toy")
    assert result.returncode == 2
    assert "theirs.py, line" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_provenance_hides_passwords() -> None:
    assert without_passwords("nas --storage postgresql://u:secret@h/d?password=secret") == (
        "nas --storage postgresql://u:***@h/d?password=***"
    )


def test_unusable_output_fails_before_the_work(command: Command) -> None:
    command("cost", "digits-vit", "--format", "jsonl").assert_error("unsupported", option="--format", value="jsonl")
    command("evaluate", TOY, "--format", "csv", "--output", "no/x.csv").assert_error("unwritable", path="no/x.csv")
    assert not Path("nas-runs").exists()
