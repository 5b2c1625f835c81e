"""Masked language modelling: masks, metrics and baselines."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from search_spaces.support.rank import RankInfo
from tasks.language.masked import MaskedSplits, mask_tokens
from tasks.language.masked_baselines import table_row_sums
from tasks.language.masked_tasks import PileMLM, StdlibMLM
from tasks.language.row_layouts import IGNORE_INDEX

CPU = torch.device("cpu")
TASK = StdlibMLM()
RECIPE = replace(TASK.presets["smoke"], batch=8)
MASK = 2048


@pytest.fixture(scope="module")
def splits() -> MaskedSplits:
    splits = TASK.splits
    assert isinstance(splits, MaskedSplits)
    return splits


def test_a_quarter_is_predicted_and_four_fifths_of_it_masked() -> None:
    draws = torch.Generator().manual_seed(0)
    ids = torch.randint(MASK, (100, 128), generator=draws)
    real = torch.arange(128).expand(100, -1) < 100
    (hidden, same), answers = mask_tokens(ids, real, 0.25, MASK, draws)
    is_predicted = answers != IGNORE_INDEX
    assert same is real
    assert not is_predicted[~real].any()
    assert torch.equal(answers[is_predicted], ids[is_predicted])
    assert torch.equal(hidden[~is_predicted], ids[~is_predicted])
    assert is_predicted[real].double().mean().item() == pytest.approx(0.25, abs=0.015)
    fates = hidden[is_predicted]
    assert (fates == MASK).double().mean().item() == pytest.approx(0.8, abs=0.03)
    assert ((fates != MASK) & (fates != ids[is_predicted])).double().mean().item() == pytest.approx(0.1, abs=0.02)
    assert hidden.max() == MASK


def test_training_masks_depend_on_seed_and_position(splits: MaskedSplits) -> None:
    def first(seed: int, rank: int = 0) -> torch.Tensor:
        return next(splits.training_batches(RECIPE, seed, (), CPU, RankInfo(rank, 2)))[0][0][0]

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))
    batches = splits.training_batches(RECIPE, 0, (), CPU)
    (_, second), (here, third) = next(batches), next(batches)
    hidden_again, _ = next(splits.training_batches(RECIPE, 0, second, CPU))
    assert torch.equal(hidden_again[0][0], here[0][0])
    assert third != second


def test_training_masks_differ_between_batches_seeds_and_processes(splits: MaskedSplits) -> None:
    recipe = replace(RECIPE, batch=2)
    places = []
    for seed, rank in ((0, 0), (1, 0), (0, 1)):
        batches = splits.training_batches(recipe, seed, (), CPU, RankInfo(rank, 2))
        places += [tuple(row.tolist()) for _ in range(2) for row in next(batches)[0][1]["asked"] != IGNORE_INDEX]
    assert len(set(places)) == len(places) == 6


def test_held_out_masks_do_not_depend_on_the_batch_size(splits: MaskedSplits) -> None:
    def all_of(batch: int) -> torch.Tensor:
        recipe = replace(RECIPE, batch=batch, measured=20)
        return torch.cat([inputs[0] for inputs, _ in splits.evaluation_batches("validation", recipe, CPU)])

    assert torch.equal(all_of(8), all_of(3))
    places = all_of(8) == MASK
    assert len({tuple(row.tolist()) for row in places}) > 0.9 * len(places), "rows are hidden each in its own way"


def test_padding_is_neither_read_nor_predicted(splits: MaskedSplits) -> None:
    padding = 0
    for (ids, real), targets in splits.evaluation_batches("test", RECIPE, CPU):
        assert real[:, 0].all()
        assert (real.int().diff(dim=1) <= 0).all(), "it stands behind the text"
        assert (targets["asked"][~real] == IGNORE_INDEX).all()
        assert (ids[~real] == 0).all()
        padding += int((~real).sum())
    assert padding > 0


def test_loss_is_the_mean_over_predicted_tokens() -> None:
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0))
    answers = torch.tensor([[3, IGNORE_INDEX, 1], [IGNORE_INDEX, IGNORE_INDEX, 6]])
    nats = [
        math.log(sum(math.exp(score) for score in logits[row, n].tolist())) - logits[row, n, answers[row, n]].item()
        for row, n in ((0, 0), (0, 2), (1, 2))
    ]
    assert TASK.loss(logits, {"asked": answers}, RECIPE).item() == pytest.approx(sum(nats) / 3, rel=1e-6)
    nothing = torch.full_like(answers, IGNORE_INDEX)
    assert TASK.loss(logits, {"asked": nothing}, RECIPE).item() == 0

    measurements = TASK.measure(logits, {"asked": answers, "document": torch.tensor([4, 9])})
    assert measurements["nats"].tolist() == pytest.approx([nats[0] + nats[1], nats[2]], rel=1e-6)
    assert measurements["tokens"].tolist() == [2, 1]
    right = [int(F.one_hot(logits[row, n].argmax(), 7)[answers[row, n]]) for row, n in ((0, 0), (0, 2), (1, 2))]
    assert measurements["right"].tolist() == [right[0] + right[1], right[2]]


def test_standard_errors_are_over_documents() -> None:
    metrics = TASK.summary(
        {
            "nats": torch.tensor([4.0, 2.0, 9.0]),
            "right": torch.tensor([1, 1, 0]),
            "tokens": torch.tensor([2, 2, 4]),
            "document": torch.tensor([0, 0, 5]),
        }
    )
    assert metrics["loss"] == pytest.approx(15 / 8)
    residuals = [6 - 15 / 8 * 4, 9 - 15 / 8 * 4]
    assert metrics["loss_se"] == pytest.approx(math.sqrt(2 * sum(residual**2 for residual in residuals)) / 8)
    assert metrics["accuracy"] == 0.25
    assert metrics["accuracy_se"] == pytest.approx(math.sqrt(2 * (1**2 + 1**2)) / 8)


def test_one_document_has_no_standard_errors() -> None:
    measurements = {"nats": [4.0, 2.0], "right": [1, 1], "tokens": [2, 2], "document": [3, 3]}
    metrics = TASK.summary({name: torch.tensor(values) for name, values in measurements.items()})
    assert metrics == {"loss": 1.5, "accuracy": 0.5}


def test_the_tokenizer_leaves_room_for_the_mask(splits: MaskedSplits) -> None:
    assert splits.rows.tokenizer.size == 2048
    assert splits.mask == 2048


def test_layers_can_be_recomputed() -> None:
    assert TASK.build_for_training(TASK.base, replace(RECIPE, recompute=True)).stack.recompute


def test_presets_of_the_pile_match_crammed_bert() -> None:
    task = PileMLM()
    assert task.closed_form(task.base_for("proxy")).params == 119_589_889
    assert task.closed_form(task.base_for("leaner")).params == 84_182_017
    paper = task.presets["paper"]
    assert task.base_for("paper") == task.base_for("proxy")
    assert (paper.hours, paper.steps, paper.batch, paper.micro_batch) == (24, 0, 8192, 128)
    day = [128 * paper.micro_batches_at(minute, 24 * 60) for minute in range(24 * 60)]
    assert (day[0], day[432], max(day)) == (128, 4096 + 128, 8192)
    assert day.index(8192) == 851  # the last micro-batch starts 13.5 minutes before 0.6 days


def test_rows_keep_their_text_and_documents(splits: MaskedSplits) -> None:
    recipe = replace(RECIPE, measured=20)
    for ((_, real), masked_ids), (_, answers) in zip(
        splits.evaluation_batches("test", recipe, CPU), splits.rows.evaluation_batches("test", recipe, CPU), strict=True
    ):
        counts = (answers[..., 0] != IGNORE_INDEX).sum(dim=1)
        assert real.sum(dim=1).tolist() == (counts + 1).clamp(max=128).tolist(), "the last token is one of the text"
        assert masked_ids["document"].tolist() == answers[:, 0, 2].tolist()
    assert splits.fingerprint != splits.rows.fingerprint
    assert splits.fingerprint != MaskedSplits(splits.rows, MASK + 1).fingerprint


def test_baselines_match_hand_computed_values() -> None:
    hidden = torch.tensor([[0, 3, 1], [3, 2, 3]])
    answers = torch.tensor([[IGNORE_INDEX, 2, 1], [0, IGNORE_INDEX, 1]])
    batches = [((hidden, hidden > -1), {"asked": answers, "document": torch.tensor([0, 1])})]
    # after token i, token j costs 4 i + 3 - j: the last is most likely
    table = torch.arange(16).view(4, 4).flip(1).double()
    sums = table_row_sums(table, 3, batches)
    assert sums["nats"].tolist() == [1 + 14, 15 + 10]  # 2 after 0, 1 after the mask; 0 at the beginning, 1 after 2
    assert sums["right"].tolist() == [0, 0]
    assert table_row_sums(table.flip(1), 3, batches)["right"].tolist() == [
        0,
        1,
    ]  # the first token is most likely
    assert sums["tokens"].tolist() == [2, 2]


def test_the_bigram_baseline_beats_the_unigram() -> None:
    baselines = TASK.baselines(RECIPE)
    assert baselines["bigram"]["loss"] < baselines["unigram"]["loss"] < math.log(2048)
    assert baselines["bigram"]["test_accuracy"] > baselines["unigram"]["test_accuracy"] > 0.02
