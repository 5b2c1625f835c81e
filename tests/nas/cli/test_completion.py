"""Completion of names in a shell, asked as the shell asks."""

import os
import subprocess
import sys

from grouped import grouped
from nas.cli import completion

COMPLETED = {
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


def test_names_of_what_is_installed_are_completed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(COMPLETED),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "_NAS_COMPLETE": "complete_bash"},
    )
    answers = [answer.split() for answer in done.stdout.split("--\n")]
    with grouped() as case:
        for (typed, completed), answer in zip(COMPLETED.items(), answers, strict=False):
            with case(typed):
                assert answer == completed, done.stderr
    assert len(answers) == len(COMPLETED) + 1


def test_of_several_values_the_last_is_completed() -> None:
    assert completion.tasks("digit-") == ["digit-ranks-vit"]
    assert completion.topologies("resnet,grn-v") == ["resnet,grn-v1", "resnet,grn-v2", "resnet,grn-v3"]
    assert completion.samplers("random,nsga") == ["random,nsga2"]
    assert completion.spaces("nothing") == []
