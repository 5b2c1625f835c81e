"""The MNIST-1D task: the published signals, the splits, the network's patches and the baselines."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from tasks.run import Run
from tasks.vision.mnist1d import MNIST1DViT

TASK = MNIST1DViT()
SMALL = replace(TASK.presets["smoke"], examples=300, held_out=101)
PUBLISHED = replace(TASK.presets["published"], held_out=50)


def naive_signals(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The signals of section 2 of the paper, drawn one by one with NumPy's legacy generator."""
    from mnist1d.data import get_templates

    random = np.random.RandomState(seed)
    signals, digits = [], []
    for digit, template in enumerate(get_templates()["x"]):
        for _ in range(number // 10):
            x = np.concatenate([template + 1e-8, np.zeros(36 + int(random.rand() * 25))])
            x = np.interp(np.linspace(0, 1, 72), np.linspace(0, 1, len(x)), x) * (1 + 0.4 * (random.rand() - 0.5))
            shift = random.choice(48)
            x = np.concatenate([x[-shift:], x[:-shift]])
            noise = gaussian_filter(0.25 * random.randn(72), 2)
            x = np.where(x != 0, x, noise) + 0.02 * random.randn(72)
            x = x - 0.75 * (random.rand() - 0.5) * np.linspace(-0.5, 0.5, 72)
            signals.append(np.interp(np.linspace(0, 1, 40), np.linspace(0, 1, 72), x))
            digits.append(digit)
    order = random.permutation(number)
    table = np.stack(signals)[order]
    return (table - table.mean()) / table.std(), np.array(digits)[order]


def test_published_signals_are_those_of_the_release() -> None:
    splits = TASK.splits_for(PUBLISHED)
    (train, digits), (test, test_digits) = splits.train, splits.test
    assert (train.shape, test.shape, splits.validation[0].shape) == ((4000, 40), (1000, 40), (50, 40))
    # The first numbers of mnist1d_data.pkl in the official repository.
    assert train[0, :3].tolist() == pytest.approx([-0.33200567, -0.47191037, -0.77869708])
    assert digits[:10].tolist() == [2, 6, 4, 5, 6, 6, 6, 0, 3, 1]
    signals, labels = naive_signals(5000, 42)
    assert np.abs(np.concatenate([train, test]) - signals).max() < 1e-6
    assert np.concatenate([digits, test_digits]).tolist() == labels.tolist()


def test_generated_splits_are_parts_of_one_draw() -> None:
    splits = TASK.splits_for(SMALL)
    signals, labels = naive_signals(510, 0)  # 502, rounded up to as many of each digit
    parts = (splits.train, splits.validation, splits.test)
    assert [len(part[1]) for part in parts] == [300, 101, 101]
    assert np.abs(np.concatenate([part[0] for part in parts]) - signals[:502]).max() < 1e-6
    assert np.concatenate([part[1] for part in parts]).tolist() == labels[:502].tolist()


def test_global_generators_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path))
    np.random.seed(5)
    expected = np.random.RandomState(5).rand()
    TASK.splits_for(replace(SMALL, examples=310))
    assert np.random.rand() == expected


def test_network_reads_patches_of_eight_numbers() -> None:
    torch.manual_seed(0)
    network = TASK.build(TASK.base).eval()
    signals, tokens = torch.randn(2, 40), list[torch.Tensor]()
    embedding = network.get_submodule("embedding")
    embedding.register_forward_hook(lambda module, inputs, outputs: tokens.append(outputs[0]))
    with torch.no_grad():
        assert network(signals).shape == (2, 10)
        project = network.get_submodule("embedding.project")
        patches = torch.stack([project(signals[:, 8 * n : 8 * n + 8]) for n in range(5)], dim=1)  # [B, N, width]
    assert torch.allclose(tokens[0][:, 1:], patches, atol=1e-6)


def test_training_beats_chance() -> None:
    fit = TASK.fit(Run(architecture=replace(TASK.base, depth=1), recipe=replace(SMALL, epochs=20, batch=30), seed=0))
    assert fit.metrics["accuracy"] > 0.3


def test_baselines_score_validation_and_test(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path))
    baselines = TASK.baselines(SMALL)
    assert set(baselines) == {"logistic regression", "gradient boosting", "MLP"}
    for columns in baselines.values():
        for split in ("", "test_"):
            share = columns[f"{split}accuracy"]
            assert 0.1 < share < 1
            assert share * 101 == pytest.approx(round(share * 101))
            assert columns[f"{split}accuracy_se"] == pytest.approx((share * (1 - share) / 101) ** 0.5)
    assert TASK.baselines(SMALL) == baselines  # from the cache


def test_published_preset_has_the_printed_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.vision.mnist1d.cache_arrays", lambda name, make: {})
    monkeypatch.setattr(MNIST1DViT, "splits_for", lambda task, recipe: SimpleNamespace(fingerprint="0"))
    printed = {name: columns["test_accuracy"] for name, columns in TASK.baselines(PUBLISHED).items()}
    assert printed == {
        "logistic regression, published": 0.32,
        "MLP, published": 0.68,
        "GRU, published": 0.91,
        "CNN, published": 0.94,
        "human expert, published": 0.96,
    }
