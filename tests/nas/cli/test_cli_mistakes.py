"""Mistakes on the command line: each is an error in one line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from command_line import Command
from grouped import grouped
from nas.report.format import Format
from search_spaces.support.errors import Kind
from toy_searches import TOY

MISTAKES: list[tuple[tuple[str, ...], Kind, dict[str, Any]]] = [
    (("search", "digits-vti"), "unknown-name", {"option": "task", "nearest": "digits-vit"}),
    (("search", "digits-vit", "--space", "jont"), "unknown-name", {"value": "jont", "nearest": "joint"}),
    (("search", "digits-vit", "--budget", "params<=lots"), "bad-syntax", {"option": "--budget", "value": "lots"}),
    (("search", "digits-vit", "--budget", "params<=5"), "infeasible", {"budget": "params<=5"}),
    (("search", "digits-vit", "--objectives", "flop"), "unknown-name", {"option": "objective", "nearest": "flops"}),
    (("search", "digits-vit", "--preset", "quick"), "unknown-name", {"option": "preset", "value": "quick"}),
    (("search", "digits-vit", "--sampler", "tpo"), "unknown-name", {"option": "sampler", "nearest": "tpe"}),
    (("search", "digits-vit", "--arch", "topology=resnett"), "unknown-name", {"nearest": "resnet"}),
    (
        ("search", "digits-vit", "--arch", "topology=dca(j=2)"),
        "unknown-name",
        {"option": "option", "value": "j", "choices": ("form", "k", "per_entry")},
    ),
    (("evaluate", "digits-vit", "--arch", "depth=x"), "bad-syntax", {"option": "depth", "value": "x"}),
    (("evaluate", "digits-vit", "--arch", "width=30,topology=rmt(keys=16)"), "unsupported", {"option": "topology"}),
    (
        ("search", "digits-vit", "--space", "timm:xcit_nano_12_p16_224"),
        "unsupported",
        {"option": "model", "value": "xcit_nano_12_p16_224"},
    ),
    (("search", "digits-vit", "--space", "timm:resnet50"), "unsupported", {"option": "model", "value": "resnet50"}),
    (
        ("search", "digits-vit", "--space", "timm:xcit_nano_12_p16_224", "--arch", "depth=3"),
        "conflict",
        {"option": "--arch", "value": "depth=3"},
    ),
    (("cost", "digits-vit", "--arch", "topology=dca(k=0)"), "out-of-range", {"option": "k", "value": 0}),
    (
        ("evaluate", "digits-vit", "--measure", "condition"),
        "unknown-name",
        {"option": "measure", "nearest": "conditioning"},
    ),
    (("results",), "missing-rows", {"option": "--storage"}),
    (("front", "--study", "nothing"), "missing-rows", {"option": "--storage"}),
    (("results", "--storage", "mysql+nodriver://x/y"), "unsupported", {"option": "--storage"}),
    (
        ("results", "--limti", "1"),
        "unknown-name",
        {"option": "--limti", "command": "nas results", "nearest": "--limit"},
    ),
    (("results", "--limit", "many"), "bad-syntax", {"option": "--limit", "value": "many", "command": "nas results"}),
    (("results", "--format", "xml"), "unknown-name", {"option": "--format", "value": "xml", "choices": (*Format,)}),
    (("results", "--format", "x=y"), "unknown-name", {"option": "--format", "value": "x=y"}),
    (("results", "--format=x=y"), "unknown-name", {"option": "--format", "value": "x=y"}),
    (("list", "tasks=1"), "unknown-name", {"option": "KIND", "value": "tasks=1", "nearest": "tasks"}),
    (("results", "--limit", "0"), "out-of-range", {"option": "--limit", "value": "0", "least": 1}),
    (("list", "task"), "unknown-name", {"option": "KIND", "value": "task", "nearest": "tasks"}),
    (("results", "--best"), "bad-syntax", {"option": "--best"}),
    (("reslts",), "unknown-name", {"option": "command", "value": "reslts"}),
    (("front", "nothing"), "bad-syntax", {"command": "nas front", "value": "nothing"}),
    (("evaluate", "digits-vit", "more"), "bad-syntax", {"command": "nas evaluate", "value": "more"}),
    (("reproduce",), "missing-value", {"option": "WHAT"}),
    (("list", "tasks", "digits-vit"), "conflict", {"option": "NAME", "value": "digits-vit"}),
    (("dashboard", "--port", "x"), "bad-syntax", {"option": "--port"}),
    # with a remedy
    (
        ("cost", "digits-vit", "--topology", "resnet,resnet"),
        "conflict",
        {"option": "--topology", "value": "resnet,resnet"},
    ),
    (
        ("cost", "digits-vit", "--topology", "dca", "--arch", "topology=resnet"),
        "conflict",
        {"option": "--topology", "value": "dca", "architecture": "topology=resnet"},
    ),
    (("cost", "digits-vit", "--arch", f"heads={10**12}"), "out-of-range", {"option": "heads", "most": 2**24}),
    *(
        (("cost", task, "--data", "nowhere"), "unsupported", {"option": "--data", "value": "nowhere", "task": task})
        for task in ("digits-vit", "digit-ranks-vit", "stdlib-lm")
    ),
    (
        ("results", "--from", "tables", "--storage", "sqlite:///x.db"),
        "conflict",
        {"option": "--from", "excludes": "--storage"},
    ),
    (("results", "--from", "odd.csv"), "bad-file", {"path": "odd.csv"}),
    (("evaluate", TOY, "-o", "a.csv", "--format", "json"), "conflict", {"option": "--format", "path": "a.csv"}),
    # options without a value
    *(
        (words, "missing-value", {"option": words[-2] if words[-2].startswith("--") else "TASK"})
        for words in (
            ("search", TOY, "--budget", ""),
            ("search", TOY, "--objectives", " "),
            ("results", "--columns", ""),
            ("results", "--order-by", ""),
            ("results", "--where", " "),
            ("results", "--from", ""),
            ("evaluate", TOY, "--topology", ""),
            ("cost", ""),
            ("search", TOY, "--budget", ","),
            ("results", "--columns", " , "),
        )
    ),
]


def test_a_mistake_gives_one_line(command: Command) -> None:
    Path("odd.csv").write_text("task;depth\na;1\n")
    with grouped() as case:
        for words, kind, fields in MISTAKES:
            with case(" ".join(words)):
                command("-q", *words).assert_error(kind, **fields)  # no progress where counting is slow


def test_one_extra_word_may_be_a_study_and_two_are_none(command: Command) -> None:
    words = (("dca(k=2)", "--study 'dca(k=2)'"), ("my study", "--from 'my study'"), ("(x).", "--study '(x).'"))
    for word, proposal in words:
        result = command("results", word)
        result.assert_error("bad-syntax", command="nas results", value=word)
        assert proposal in result.stderr  # options to copy
    result = command("results", "one", "two")
    result.assert_error("bad-syntax", command="nas results", value="one two")
    assert "--study" not in result.stderr


def test_the_installed_command_fails_without_a_traceback(tmp_path: Path) -> None:
    words = [str(Path(sys.executable).with_name("nas")), "search", "digits-vit", "--trials", "many"]
    result = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert "--trials" in result.stderr
    assert len(result.stderr.splitlines()) == 1
