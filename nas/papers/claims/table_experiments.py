"""Claims of the papers that shipped rows can test."""

from nas.papers.claims import Claim
from nas.papers.claims.row_experiments import BetterClaim, Shape, TableExperiment

_LM = "stdlib-lm-topologies-tuned"
_LM_SETTING = "stdlib-lm at proxy, 918k parameters each, learning rates tuned alike, 3 seeds"
_MAZE = "goal-point-maze-medium-tuned"
_LISTS = "lra-listops-depth-heads"


def _over_resnet(topology: str, source: str, statement: str) -> BetterClaim:
    claim = Claim(
        name=f"{topology} over resnet, stdlib-lm",
        source=source,
        statement=statement,
        quantity="nats a token by which its validation loss is lower, at equal parameters",
    )
    return BetterClaim(claim=claim, first={"topology": "resnet"}, second={"topology": topology}, metric="loss")


def _in_the_maze(depth: int) -> BetterClaim:
    first: Shape = {"topology": "resnet", "depth": depth}
    claim = Claim(
        name=f"ancre over resnet, maze, {4 * depth} layers",
        source="section 5.3",
        statement=f"ANCRe improves goal-conditioned reinforcement learning, here with {4 * depth} layers",
        quantity="steps of 500 more at the goal",
    )
    return BetterClaim(claim=claim, first=first, second={"topology": "ancre", "depth": depth}, metric="time_at_goal")


TABLE_EXPERIMENTS = (
    TableExperiment(
        "dca",
        _LM,
        _LM_SETTING,
        (
            _over_resnet("grn-v3", "table 6", "GRN-v3 has a lower perplexity than the transformer"),
            _over_resnet("dca(k=2)", "tables 1, 5, 6", "DCA has a lower perplexity than the transformer"),
            _over_resnet("hyper", "table 5", "hyper-connections have a lower perplexity than the transformer"),
        ),
    ),
    TableExperiment(
        "ancre", _LM, _LM_SETTING, (_over_resnet("ancre", "table 2", "ANCRe has a lower perplexity than residuals"),)
    ),
    TableExperiment(
        "ancre",
        _MAZE,
        "goal-point-maze-medium at proxy, blocks of 4 layers, learning rates tuned alike, 3 seeds",
        (_in_the_maze(1), _in_the_maze(3)),
    ),
    TableExperiment(
        "rmt",
        _LM,
        _LM_SETTING,
        (
            _over_resnet(
                "rmt",
                "section 4.2",
                "the RMT reaches a lower loss than a larger transformer, here of its size",
            ),
        ),
    ),
    TableExperiment(
        "leaner",
        _LISTS,
        "lra-listops at proxy, 5 seeds",
        (
            BetterClaim(
                claim=Claim(
                    name="1 x 4 over 2 x 2, ListOps",
                    source="table 6",
                    statement="one layer of four heads is more accurate than two of two",
                    quantity="gain in validation accuracy",
                ),
                first={"depth": 2, "heads": 2},
                second={"depth": 1, "heads": 4},
                metric="accuracy",
            ),
        ),
    ),
)
"""The claims for each shipped table that has some, by paper."""
