"""Tokens per second of a language task's training at three sizes, beside a bare loop around Hugging Face's GPT-2.

Both train a decoder of one shape on the same rows, in one precision, with the same optimiser and clipping, in turns;
the ratio is taken turn by turn. Then the task's loader runs alone: it must make rows faster than the model learns them.
And a training goes on at 90 % of an epoch of a single gzip file, which is the time to its first batch over what the
epoch takes to learn. On a GPU where there is one, in bf16; else on the CPU with one thread, in fp32.
"""

import gzip
import json
import statistics
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.clock import WARM, Clock
from benchmarks.form import Figure, main
from search_spaces.architecture import Architecture
from tasks.batches import Batch
from tasks.language.corpus import Corpus, folder_corpus, stdlib_corpus
from tasks.language.data import LanguageSplits
from tasks.language.presets import LanguageRecipe
from tasks.language.rows import Packed
from tasks.language.shards import texts_of
from tasks.language.task import LanguageTask
from tasks.language.tokenizer import Tokenizer, trained_tokenizer
from tasks.run import Run


class GPT2OnStdlib(LanguageTask):
    """The standard library's documentation, learnt by GPT-2."""

    name = "gpt2-on-stdlib"
    version = 1
    style = "gpt2"
    layout = Packed()
    tied = True

    def __init__(self, architecture: Architecture, vocabulary: int, context: int, recipe: LanguageRecipe) -> None:
        super().__init__()
        self.base, self.vocabulary, self.context = architecture, vocabulary, context
        self.presets = {"timed": recipe}
        self.clock = Clock(recipe.steps)

    def text(self) -> tuple[Corpus, Tokenizer]:
        """As `stdlib-lm` has it."""
        corpus = stdlib_corpus()
        return corpus, trained_tokenizer(texts_of(corpus.train), 2048)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: LanguageRecipe) -> Tensor:
        """The task's loss, which each pass takes once."""
        self.clock.tick()
        return super().loss(outputs, targets, recipe)


def sizes() -> dict[str, GPT2OnStdlib]:
    """Decoders of one to seven million parameters on a CPU; GPT-2 small, a smaller and GPT-2 medium on a GPU."""
    shared = {"steps": WARM + 10, "measured": 1, "reports": 1}
    if torch.cuda.is_available():
        words, context, heads = 50257, 1024, {"small": (4, 4), "middle": (12, 12), "large": (24, 16)}
        recipe = LanguageRecipe(batch=16, lr=6e-4, precision="bf16-mixed", **shared)
    else:
        words, context, heads = 2048, 128, {"small": (2, 4), "middle": (4, 4), "large": (8, 8)}
        recipe = LanguageRecipe(batch=8, lr=1e-3, **shared)
    each = 64 if torch.cuda.is_available() else 32
    shapes = {
        name: Architecture(depth=depth, width=each * many, heads=many, head_dim=each, hidden=4 * each * many)
        for name, (depth, many) in heads.items()
    }
    return {name: GPT2OnStdlib(shape, words, context, recipe) for name, shape in shapes.items()}


def task_speed(task: GPT2OnStdlib) -> float:
    """Tokens per second of the task's own `fit`."""
    recipe = task.presets["timed"]
    task.clock = Clock(recipe.steps)
    task.fit(Run(architecture=task.base, recipe=task.presets["timed"], seed=0))
    return task.clock.passes_per_second() * recipe.batch * task.context


def reference_speed(task: GPT2OnStdlib, batches: list[Batch], device: torch.device) -> float:
    """Tokens per second of a bare loop around Hugging Face's model, on rows that lie ready on the device."""
    recipe, shape = task.presets["timed"], task.base
    config = GPT2Config(
        vocab_size=task.vocabulary,
        n_positions=task.context,
        n_embd=shape.width,
        n_layer=shape.depth,
        n_head=shape.heads,
        n_inner=shape.hidden,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),  # the task has no dropout either
        **dict.fromkeys(("bos_token_id", "eos_token_id"), None),
    )
    model = GPT2LMHeadModel(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.lr, betas=recipe.betas, fused=True)
    clock = Clock(recipe.steps)
    for inputs, targets in batches:
        with torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bf16-mixed"):
            logits = model(inputs, use_cache=False).logits
            clock.tick()
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
    return clock.passes_per_second() * recipe.batch * task.context


def loader_speed(task: GPT2OnStdlib, seconds: float) -> float:
    """Tokens per second of the task's rows, from text, when nothing learns from them."""
    recipe = task.presets["timed"]
    rows = task.splits.training(recipe, 0, (), torch.device("cpu"))
    next(rows)
    began, batches = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        next(rows)
        batches += 1
    rows.close()
    return batches * recipe.batch * task.context / (time.perf_counter() - began)


def resume_seconds(task: GPT2OnStdlib) -> tuple[float, int]:
    """Time to the first batch at 90 % of an epoch of one file, and the tokens of that epoch."""
    recipe, device = task.presets["timed"], torch.device("cpu")
    corpus, tokenizer = task.read_text
    with TemporaryDirectory() as folder:
        lines = [json.dumps({"text": text}).encode() for text in texts_of(corpus.train)]
        Path(folder, "train.json.gz").write_bytes(gzip.compress(b"\n".join(lines)))
        splits = LanguageSplits(folder_corpus(Path(folder), "text"), tokenizer, task.layout, task.context)
        rows = sum(len(inputs) for inputs, _ in splits.once(1024))
        learning = splits.training(recipe, 0, (), device)
        *_, (_, position) = islice(learning, int(0.9 * rows / recipe.batch))
        learning.close()
        began = time.perf_counter()
        going_on = splits.training(recipe, 0, position, device)
        next(going_on)
        seconds = time.perf_counter() - began
        going_on.close()
    return seconds, rows * task.context


def figures_of(size: str, task: GPT2OnStdlib, quick: bool) -> dict[str, Figure]:
    """Each takes its turn; ratios are taken turn by turn."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = task.splits.training(task.presets["timed"], 0, (), device)
    batches = [batch for batch, _ in islice(rows, task.presets["timed"].steps)]
    rows.close()
    ours, theirs = [], []
    for _ in range(3 if quick else 25):
        ours.append(task_speed(task))
        theirs.append(reference_speed(task, batches, device))
    loader, model = loader_speed(task, 1 if quick else 10), statistics.median(ours)
    ratio = statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
    seconds, tokens = resume_seconds(task)
    alone = {"bare loop, transformers": statistics.median(theirs)}
    return {
        f"tokens_over_reference_{size}": Figure(ratio, "ratio", "higher", target=1.0),
        f"tokens_per_second_{size}": Figure(model, "tokens/s", "higher", peers=alone),
        f"loader_tokens_per_second_{size}": Figure(loader, "tokens/s", "higher"),
        f"loader_over_model_{size}": Figure(loader / model, "ratio", "higher", target=1.0),
        f"resume_cost_{size}": Figure(seconds * model / tokens, "share of an epoch", "lower", target=0.01),
    }


def figures(quick: bool) -> dict[str, Figure]:
    """Of every size."""
    torch.set_num_threads(1)  # as evaluations run
    found: dict[str, Figure] = {}
    for size, task in sizes().items():
        found |= figures_of(size, task, quick)
    return found


if __name__ == "__main__":
    main("lm_throughput", figures)
