"""Completion of names, called as a shell does."""

import os
import subprocess
import sys

from grouped import grouped
from nas.cli import completion

COMPLETIONS = {
    "nas evaluate digit-": ["digit-ranks-vit"],
    "nas compare stdlib-lm --topology resnet,grn-v": ["resnet,grn-v1", "resnet,grn-v2", "resnet,grn-v3"],
    "nas show digits-vit --topology grn-v1": ["grn-v1"],
    "nas search digits-vit --space per": ["per-block"],
    "nas search digits-vit --sampler surr": ["surrogate"],
    "nas tournament replay:x --samplers random,nsga": ["random,nsga2"],
    "nas search nothing-begins-so": [],
}

PROGRAM = """
import os, sys
from nas.cli.main import main
for line in sys.stdin.read().splitlines():
    sys.stdout.flush()
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = line, str(len(line.split()) - 1)
    sys.argv = ["nas"]
    try:
        main()
    except SystemExit:
        pass
    print(flush=True)
    print("--", flush=True)
"""


def test_shell_completes_names() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(COMPLETIONS),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "_NAS_COMPLETE": "complete_bash"},
    )
    answers = [answer.split() for answer in result.stdout.split("--\n")]
    with grouped() as case:
        for (line, expected), answer in zip(COMPLETIONS.items(), answers, strict=False):
            with case(line):
                assert answer == expected, result.stderr
    assert len(answers) == len(COMPLETIONS) + 1


def test_last_of_several_values_gets_completions() -> None:
    assert completion.tasks("digit-") == ["digit-ranks-vit"]
    assert completion.topologies("resnet,grn-v") == ["resnet,grn-v1", "resnet,grn-v2", "resnet,grn-v3"]
    assert completion.samplers("random,nsga") == ["random,nsga2"]
    assert completion.spaces("nothing") == []
