"""The flags of the command line are frozen: adding one is a decision, not an accident."""

import re

import typer
from typer.core import TyperOption
from typer.main import get_command

from nas.cli.main import app

FLAGS = {
    "search": {
        "--arch", "--axis", "--budget", "--data", "--log", "--min-fraction", "--objectives", "--plot", "--preset",
        "--profile", "--reduction-factor", "--reeval-fraction", "--rungs", "--sampler", "--save-models", "--seed",
        "--seeds", "--set", "--space", "--storage", "--study", "--threads", "--timeout", "--timings", "--trial-gpus",
        "--trial-memory", "--trial-timeout", "--trials", "--workers",
    },
    "audit": {
        "--arch", "--architectures", "--axis", "--budget", "--data", "--format", "-o", "--output", "--preset",
        "--seeds", "--set", "--space", "--storage", "--threads", "--trial-gpus", "--trial-memory", "--trial-timeout",
        "--workers",
    },
    "evaluate": {
        "--arch", "--data", "--format", "--log", "--max-steps", "--measure", "-o", "--output", "--preset", "--profile",
        "--render", "--save", "--seed", "--set", "--start", "--storage", "--study", "--threads", "--topology",
    },
    "retrofit": {
        "--data", "--format", "-o", "--output", "--preset", "--save", "--seed", "--set", "--storage", "--study",
        "--task", "--threads", "--topology",
    },
    "tournament": {
        "--budget", "--format", "--objectives", "-o", "--output", "--plot", "--samplers", "--seeds", "--trials",
    },
    "cost": {"--arch", "--by", "--data", "--format", "--preset", "--topology"},
    "profile": {"--arch", "--batch", "--data", "--format", "--preset", "--set", "--threads", "--topology"},
    "compare": {
        "--arch", "--curves", "--data", "--format", "--log", "--match", "-o", "--output", "--plot", "--preset",
        "--profile", "--seeds", "--set", "--storage", "--study", "--threads", "--topology", "--trial-gpus",
        "--trial-memory", "--trial-timeout", "--tune", "--tune-trials", "--workers",
    },
    "check-mup": {
        "--arch", "--data", "--format", "-o", "--output", "--plot", "--preset", "--seeds", "--set", "--topology",
        "--widths",
    },
    "show": {
        "--arch", "--checkpoint", "--data", "--format", "-o", "--output", "--preset", "--seed", "--set", "--topology",
    },
    "new-task": {"-o", "--output"},
    "new-topology": {"-o", "--output"},
    "export": {"--card", "--data", "--raw", "--storage", "--task", "--to"},
    "predict": {"--data", "--format", "--output", "--task", "--tokens", "-o"},
    "downstream": {
        "--data", "--examples", "--format", "--include", "-o", "--output", "--storage", "--task", "--tasks",
    },
    "encode": {"--size", "--vae"},
    "import": {"--storage", "--study"},
    "results": {
        "--best", "--budget", "--by", "--columns", "--format", "--from", "--knee", "--limit", "--order-by", "-o",
        "--output", "--pareto", "--sql", "--storage", "--study", "--where",
    },
    "effects": {
        "--at", "--format", "--from", "--metric", "-o", "--output", "--plot", "--storage", "--study", "--where",
    },
    "report": {"--from", "-o", "--output", "--storage", "--topologies", "--where"},
    "front": {"--budget", "--from", "--objectives", "--plot", "--storage", "--study", "--where"},
    "dashboard": {"--port", "--storage"},
    "list": {"--storage"},
    "reproduce": {"--format", "--paper", "--plot", "--preset", "--storage", "--study", "--workers"},
}  # fmt: skip


ORDER = [
    *("search", "evaluate", "audit", "retrofit", "compare", "tournament"),
    *("cost", "profile", "check-mup", "show"),
    *("export", "predict", "downstream", "encode", "import", "new-task", "new-topology"),
    *("results", "front", "effects", "report", "dashboard"),
    *("list", "reproduce"),
]
"""The order of the commands in `nas --help`."""

COMMAND_SPECIFIC = {"seeds", "study", "trials"}
"""Options whose meaning and help text depend on the command."""


def test_each_command_has_the_frozen_flags() -> None:
    group = get_command(app)
    context = typer.Context(group)
    flags, helps = {}, {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
        flags[name] = {flag for option in options for flag in option.opts} - {"--help", "--save-config"}
        for option in options:
            if option.name not in COMMAND_SPECIFIC:
                helps.setdefault((option.name, option.metavar), set()).add(option.help)
        assert "--save-config" in {flag for option in options for flag in option.opts}
        assert "Raises" not in command.help  # only callers in Python need that
    assert flags == FLAGS
    assert [*flags] == ORDER
    assert all(len(texts) == 1 for texts in helps.values()), helps


def test_help_texts_hold_no_private_name() -> None:
    commands = vars(get_command(app))["commands"].values()
    texts = {
        str(parameter.help)
        for command in commands
        for parameter in command.params
        if isinstance(parameter, TyperOption)
    }
    assert len(texts) > 50
    assert not [text for text in texts if re.search(r"(?<!\w)_\w", text)]
