"""What a shell completes, asked as the shell asks it."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("nas evaluate digit-", ["digit-ranks-vit"]),
        ("nas compare stdlib-lm --topology resnet,grn-v", ["resnet,grn-v1", "resnet,grn-v2", "resnet,grn-v3"]),
        ("nas show digits-vit --topology grn-v1", ["grn-v1"]),
        ("nas search digits-vit --space per", ["per-block"]),
        ("nas search digits-vit --sampler surr", ["surrogate"]),
        ("nas tournament replay:x --samplers random,nsga", ["random,nsga2"]),
        ("nas search nothing-begins-so", []),
    ],
)
def test_names_of_what_is_installed_are_completed(typed: str, completed: list[str]) -> None:
    asked = {"_NAS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    program = "import sys; from nas.cli import main; sys.argv = ['nas']; main()"
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **asked})
    assert done.stdout.split() == completed, done.stderr
