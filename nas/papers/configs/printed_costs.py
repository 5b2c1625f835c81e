"""Other printed costs compared with counts here: FLOPs, tokens, memory and time of trainings.

Labels are those of `nas.papers.configs`. "beside" marks a device measurement; `description` names what is counted here
instead. Then only ratios of rows can be compared.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from nas.papers.configs import Label, PaperConfig, paper_configs, row_of
from nas.papers.configs.paper_networks import params
from results.records import published
from search_spaces.architecture.architecture import Architecture
from tasks.base import Task
from tasks.language.published_tasks import LM1BLM, OpenWebTextLM
from tasks.language.task import CorpusTask

_RELATION = "RMT over transformer"

BYTES_SINGLE = 16  # fp32: a weight, its gradient, Adam's two moments
BYTES_BF16 = 8  # the same in bf16, as ANCRe trains


@dataclass(frozen=True, slots=True)
class PrintedCost:
    """A printed cost and its count here.

    Attributes:
        paper: Name of the paper.
        table: Number of the table.
        model: The trained model.
        printed: The printed number, or the ratio of two.
        resolution: Unit of the last printed digit; a match is within half of it.
        count: The count here.
        unit: Unit of both, or "printed | counted" if they differ.
        label: Kind of the reading.
        description: What is counted.
    """

    paper: str
    table: str
    model: str
    printed: float
    resolution: float
    count: float
    unit: str
    label: Label
    description: str

    @property
    def matches(self) -> bool:
        """Whether the count rounds to the printed number."""
        return abs(self.count - self.printed) <= self.resolution / 2


def flops() -> Iterator[PrintedCost]:
    """Yield RMT, tables 3 and 4: FLOPs of trainings, and the RMT's ratio to the transformer's."""
    task = OpenWebTextLM()
    for vocabulary, words in (
        (True, "matrix work of our networks and of their gradients, the unembedding included"),
        (False, "the same without the unembedding, which comes nearest"),
    ):
        for table in ("3", "4"):
            pair = []
            for model, preset in (("Transformer", "transformer-405m"), ("RMT", "rmt-305m")):
                line = _line("rmt", table, model)
                tokens = float(line["train_tokens_millions"]) * 1e6
                count = 3 * tokens / task.context * _forward(task, task.base_for(preset), vocabulary=vocabulary)
                paper_value, resolution = _number(line["train_flops"])
                pair.append((paper_value, count))
                label = _label_of_flops(table, model, vocabulary=vocabulary)
                yield PrintedCost("rmt", table, model, paper_value, resolution, count, "FLOPs", label, words)
            relation, ratio = (pair[1][i] / pair[0][i] for i in (0, 1))
            label = _label_of_flops(table, _RELATION, vocabulary=vocabulary)
            yield PrintedCost("rmt", table, _RELATION, relation, 0.01, ratio, "share", label, words)


def tokens() -> Iterator[PrintedCost]:
    """Yield RMT, tables 8 and 9: 20 tokens for each non-embedding parameter; ANCRe, table 2: steps of table 7."""
    task = OpenWebTextLM()
    for table in ("8", "9"):
        for line in (line for line in published.lines_of("rmt") if line["table"] == table):
            preset = line["model"].lower().replace(" ", "-")
            architecture = task.base_for(preset)
            words = (2 * task.vocabulary + task.context) * architecture.width
            count = 20 * (_params(task, architecture) - words) / 1e6
            paper_value, resolution = _number(line["train_tokens_millions"])
            yield PrintedCost(
                "rmt", table, line["model"], paper_value, resolution, count, "10^6 tokens",
                _label_of_tokens(line["model"]),
                "20 tokens for each parameter that is in no embedding, section 4.2",
            )  # fmt: skip
    for size in ("60M", "130M", "350M", "1B"):
        line = _line("ancre", "7", f"LLaMA-{size}, FullPT(+ANCRe)")
        count = float(line["steps"]) * float(line["batch"]) * float(line["context"]) / 1e6
        paper_value, resolution = _number(_line("ancre", "2", f"LLaMA-{size}, FullPT")["train_tokens_millions"])
        yield PrintedCost(
            "ancre", "2", f"LLaMA-{size}", paper_value, max(resolution, 100), count, "10^6 tokens",
            _label_of_tokens(f"LLaMA-{size}"), "steps, rows and tokens of table 7, padding included",
        )  # fmt: skip


def memory() -> Iterator[PrintedCost]:
    """Yield Leaner, tables 2 to 5, and ANCRe, table 6: device memory, with the size of weights and optimizer states."""
    for line in published.lines_of("leaner"):
        if line["memory_gb"] and (reading := _first_match("leaner", line)):
            yield _memory_cost("leaner", line, params(reading), BYTES_SINGLE, "four numbers of four bytes a parameter")
    for line in published.lines_of("ancre"):
        if line["memory_gb"]:
            size, _, which = line["model"].partition(", ")
            model = f"{size}, FullPT" + ("+ANCRe" if which == "with ANCRe" else "")
            (reading,) = (
                candidate for candidate in paper_configs("ancre") if candidate.table == "2" and candidate.model == model
            )
            yield _memory_cost("ancre", line, params(reading), BYTES_BF16, "four numbers of two bytes a parameter")


def step_time_costs() -> Iterator[PrintedCost]:
    """Yield step times relative to the plain network's, with the ratio of the counted work."""
    lm1b, words = LM1BLM(), "multiply-accumulates and mixing over the residual network's; no device"
    base = lm1b.base.with_fields({"depth": 24})
    plain = float(_line("dca", "1", "Transformer")["batches_per_s"])
    for k in (1, 2, 4, 8, 16, 24):
        line = _line("dca", "1", f"{k}-DCA")
        topology = base.with_fields({"topology": f"dca(k={k})"})
        yield _time_cost(
            "dca", "1", line["model"], plain / float(line["batches_per_s"]), _work_ratio(lm1b, topology, base), words
        )
    task = OpenWebTextLM()
    large, lean = task.base_for("transformer-405m"), task.base_for("rmt-305m")
    paper_value = float(_line("rmt", "4", "RMT")["train_s"]) / float(_line("rmt", "4", "Transformer")["train_s"])
    yield _time_cost("rmt", "4", _RELATION, paper_value, _work_ratio(task, lean, large), words)
    for size in ("60M", "130M", "350M"):
        with_, without = (_line("ancre", "6", f"LLaMA-{size}, {variant} ANCRe") for variant in ("with", "without"))
        paper_value = float(with_["train_s"]) / float(without["train_s"])
        c4 = _c4()
        plain_network = c4.base_for(f"ancre-{size.lower()}")
        ratio = _work_ratio(c4, plain_network.with_fields({"topology": "ancre"}), plain_network)
        yield _time_cost("ancre", "6", f"LLaMA-{size}, ANCRe over none", paper_value, ratio, words)


COSTS: Mapping[str, Callable[[], Iterator[PrintedCost]]] = {
    "flops": flops,
    "tokens": tokens,
    "memory": memory,
    "time": step_time_costs,
}
"""Name of a cost in `nas reproduce` -> its records."""


def _c4() -> CorpusTask:
    from tasks.language.published_tasks import C4LM

    return C4LM()


def _time_cost(paper: str, table: str, model: str, paper_value: float, ratio: float, description: str) -> PrintedCost:
    return PrintedCost(
        paper, table, model, paper_value, 0.01, ratio, "times a step | times its work", "beside", description
    )


def _memory_cost(paper: str, line: published.Line, count: int, bytes_each: int, description: str) -> PrintedCost:
    paper_value, resolution = _number(line["memory_gb"])
    what = f"weights, gradients and Adam's moments alone: {description}; no activations"
    unit = "GB on the device | GB of these"
    return PrintedCost(
        paper, line["table"], line["model"], paper_value, resolution, count * bytes_each / 1e9, unit, "beside", what
    )


def _first_match(paper: str, line: published.Line) -> PaperConfig | None:
    """Return the first reading that gives the row's printed parameters."""
    return next(
        (
            candidate
            for candidate in paper_configs(paper)
            if candidate.row == row_of(line) and candidate.label in ("stated", "fitted")
        ),
        None,
    )


def _line(paper: str, table: str, model: str) -> published.Line:
    (line,) = (
        candidate
        for candidate in published.lines_of(paper)
        if (candidate["table"], candidate["model"]) == (table, model)
    )
    return line


def _number(text: str) -> tuple[float, float]:
    """Return a printed number and the unit of its last digit; final zeros of a whole number do not count."""
    number = Decimal(text)
    exponent = number.normalize().as_tuple().exponent if "." not in text else number.as_tuple().exponent
    assert isinstance(exponent, int)
    return float(number), float(Decimal(10) ** exponent)


def _label_of_flops(table: str, model: str, *, vocabulary: bool) -> Label:
    """ "fitted" where leaving the vocabulary out matches, which was chosen because it comes closest."""
    return "fitted" if not vocabulary and (table, model) in (("4", "Transformer"), ("3", _RELATION)) else "differs"


def _label_of_tokens(model: str) -> Label:
    """Return "differs" for RMT 305M, which trained on up to 6 billion tokens for tables 3 and 4, and three of ANCRe's.

    Those of ANCRe may leave out padding.
    """
    return "differs" if model in ("RMT 305M", "LLaMA-60M", "LLaMA-130M", "LLaMA-350M") else "stated"


def _forward(task: CorpusTask, architecture: Architecture, *, vocabulary: bool) -> float:
    """Return the FLOPs of one sequence, two for each multiply-accumulate."""
    form = task.closed_form(architecture)
    unembedding = task.context * task.vocabulary * architecture.width
    return 2 * (form.macs - (0 if vocabulary else unembedding))


def _params(task: CorpusTask, architecture: Architecture) -> int:
    return task.closed_form(architecture).params


def _work_ratio(task: Task, architecture: Architecture, base: Architecture) -> float:
    """Return the ratio of work: multiply-accumulates plus half of the elementwise operations."""
    forms = [task.closed_form(network) for network in (architecture, base)]
    work = [form.macs + form.elementwise / 2 for form in forms if form is not None]
    return work[0] / work[1]
