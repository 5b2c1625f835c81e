"""What goes wrong at a terminal: options that say nothing, output that nobody takes, plug-ins that end the program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nas.cli import main
from nas.storage.store import Store
from own_process import in_own_process
from toy_rows import a_row

TOYS = Path(__file__).parent / "toy_tasks.py"

EXITS = """
import sys
sys.path.insert(0, {folder!r})
from toy_tasks import Toy

class AtMaking(Toy):
    name = "at-making"

    def __init__(self, data=None):
        sys.exit(0)

class AtPreparing(Toy):
    name = "at-preparing"

    def prepare(self):
        sys.exit(0)
"""


def nas(*words: str, out: Path | None = None) -> subprocess.CompletedProcess[str]:
    return in_own_process("-q", *words, out=out)


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Store("sqlite:///nas-runs/studies.db", make=True).add(a_row(), "s")


@pytest.mark.parametrize("format", ["table", "csv"])
def test_a_full_disk_is_a_line(format: str) -> None:
    done = nas("results", "--format", format, out=Path("/dev/full"))
    assert done.returncode == 2
    assert done.stderr == "nas: what was to be printed cannot be written: No space left on device.\n"


@pytest.mark.parametrize("words", [["results", "--format", "csv"], ["search", "--help"], ["list", "topologies"]])
def test_a_reader_that_has_seen_enough_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "nas", "-q", *words]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_closed_output_is_said_before_the_work() -> None:
    command = [sys.executable, "-m", "nas", "evaluate", f"{TOYS}:Toy"]
    closed = "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", closed, *command], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("nas: standard output is closed")
    assert len(done.stderr.splitlines()) == 1
    assert Store("sqlite:///nas-runs/studies.db").studies() == ["s"]


@pytest.mark.parametrize(
    "words",
    [
        ("search", f"{TOYS}:Toy", "--budget", ""),
        ("search", f"{TOYS}:Toy", "--objectives", " "),
        ("results", "--columns", ""),
        ("results", "--order-by", ""),
        ("results", "--where", " "),
        ("results", "--from", ""),
        ("evaluate", f"{TOYS}:Toy", "--topology", ""),
        ("cost", ""),
        ("search", f"{TOYS}:Toy", "--budget", ","),
        ("results", "--columns", " , "),
    ],
)
def test_an_option_that_says_nothing_is_a_line(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nas", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    what = words[-2] if words[-2].startswith("--") else "TASK"
    assert capsys.readouterr().err == f"nas: {what} was given nothing. Say what, or leave it out.\n"


@pytest.mark.parametrize(("output", "reason"), [("folder", "Is a directory"), ("/proc/x.csv", "No such file")])
def test_output_that_cannot_be_written_is_said_before_a_training(output: str, reason: str) -> None:
    Path("folder").mkdir()
    done = nas("evaluate", f"{TOYS}:Toy", "--preset", "smoke", "--output", output, "--format", "csv")
    assert done.returncode == 2
    assert done.stderr.startswith(f"nas: {output} cannot be written: {reason}")
    assert len(done.stderr.splitlines()) == 1
    assert Store("sqlite:///nas-runs/studies.db").studies() == ["s"]
    assert not list(Path("folder").iterdir())


def test_no_folder_is_made_for_a_picture() -> None:
    done = nas("search", f"{TOYS}:Toy", "--preset", "smoke", "--plot", "pictrues/front.png")
    assert done.returncode == 2
    assert done.stderr.startswith("nas: pictrues/front.png cannot be written: there is no folder pictrues.")
    assert not Path("pictrues").exists()


@pytest.mark.parametrize("name", ["AtMaking", "AtPreparing"])
def test_a_plug_in_that_ends_the_program_is_named(name: str) -> None:
    Path("exits.py").write_text(EXITS.format(folder=str(TOYS.parent)))
    done = nas("search", f"exits.py:{name}", "--preset", "smoke", "--trials", "1", "--workers", "1")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert "SystemExit: 0 (exits.py, line " in last
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("task", ["digits-vit", "digit-ranks-vit", "stdlib-lm"])
def test_data_for_a_task_that_has_its_own_is_a_line(task: str) -> None:
    done = nas("cost", task, "--data", "nowhere")
    assert done.returncode == 2
    assert done.stderr == f"nas: task {task!r} has its data built in and takes no --data, got 'nowhere'.\n"


def test_networks_that_nothing_could_hold_are_refused() -> None:
    done = nas("cost", "digits-vit", "--arch", f"heads={10**12}")
    assert done.stderr == "nas: heads must be at most 16777216, got 1000000000000.\n"


def test_what_is_said_does_not_go_where_rows_go() -> None:
    words = [sys.executable, "-m", "nas", "evaluate", f"{TOYS}:Toy", "--preset", "smoke", "--format", "csv"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2), text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2
    assert done.stdout.startswith('"task"')


def test_a_result_that_cannot_be_written_is_kept_and_said_so() -> None:
    Path("full.csv").symlink_to("/dev/full")
    done = nas("evaluate", f"{TOYS}:Toy", "--preset", "smoke", "-o", "full.csv")
    assert done.returncode == 2
    (row,) = Store("sqlite:///nas-runs/studies.db").read(["evaluations"]).rows
    remedy = f"--study all --where \"identity = '{row.identity()}'\" -o FILE` writes it, with its --storage."
    assert done.stderr.endswith(f"{remedy}\n")
    assert nas("results", "--study", "all", "--where", f"identity = '{row.identity()}'", "-o", "a.csv").returncode == 0
    assert row.identity() in Path("a.csv").read_text()
    done = nas("evaluate", f"{TOYS}:Stumbling", "--arch", "depth=1", "--preset", "smoke", "-o", "full.csv")
    assert "No space left" in done.stderr
    assert "The evaluation failed: RuntimeError: a layer broke" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["cost", "digits-vit", "--topology", "resnet,resnet"],
            "--topology takes one topology here, got 'resnet,resnet'",
        ),
        (["cost", "digits-vit", "--topology", "dca", "--arch", "topology=resnet"], "both say the topology. Leave one"),
        (["results", "--study", "all,s"], "'all' stands alone, got --study all,s."),
        (["results", "--from", "tables", "--storage", "sqlite:///x.db"], "--from and --storage are two sources"),
        (["results", "--from", "odd.csv"], "commas part its columns, and its first line has ';'"),
        (["evaluate", f"{TOYS}:Toy", "-o", "a.csv", "--format", "json"], "are two forms. Leave --format out."),
    ],
)
def test_these_are_refused_with_a_remedy(words: list[str], says: str) -> None:
    Path("odd.csv").write_text("task;depth\na;1\n")
    done = nas(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert says in done.stderr
