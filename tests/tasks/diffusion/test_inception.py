"""Inception's features, and statistics of a reference batch."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from expect import raises
from search_spaces.support.errors import Kind
from tasks.diffusion.frechet import frechet, normal
from tasks.diffusion.inception import InceptionFeatures, extract_features, fid_scores, inception, real_pictures

fidelity = pytest.importorskip("torch_fidelity.feature_extractor_inceptionv3")
CPU = torch.device("cpu")
PICTURES = torch.randint(0, 256, (2, 3, 40, 40), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of random weights in torch-fidelity's format."""

    class RandomWeights(fidelity.FeatureExtractorInceptionV3):
        def load_state_dict(self, state: object) -> None:
            pass

    file = tmp_path_factory.mktemp("inception") / "inception.pth"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fidelity, "load_state_dict_from_url", lambda *_, **__: {})
        torch.save(RandomWeights("untrained", ["2048"]).state_dict(), file)
    return file


def test_features_match_torch_fidelity(weights: Path) -> None:
    network = inception(weights)
    features = extract_features(network, [PICTURES[:1], PICTURES[1:]], CPU)
    assert [each.shape for each in features] == [(2, 2048), (2, 7 * 17 * 17), (2, 1008)]
    pools, logits = network(PICTURES[1:])
    np.testing.assert_allclose(features.pooled[1:], pools.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(features.logits[1:], logits.numpy(), rtol=1e-4, atol=1e-6)
    assert (features.spatial >= 0).all(), "behind the rectifier"
    assert not network.get_submodule("Mixed_6d.branch1x1")._forward_hooks


def test_refuses_weights_that_would_run_code(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, ...]:
            return print, ("it ran",)

    torch.save({"a": Runs()}, tmp_path / "inception.pth")
    with raises("bad-file", path=str(tmp_path / "inception.pth")):
        inception(tmp_path / "inception.pth")


def test_weights_that_cannot_be_downloaded_are_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object, **__: object) -> dict[str, object]:
        raise OSError("no network")

    monkeypatch.setattr(fidelity, "load_state_dict_from_url", fetch)
    with raises("unavailable", cause="OSError") as error:
        inception(None)
    assert isinstance(error.value.__cause__, OSError)


class Tiny(nn.Module):
    """Mean colors instead of Inception's features."""

    def __init__(self) -> None:
        super().__init__()
        self.Mixed_6d = nn.ModuleDict({"branch1x1": nn.Conv2d(3, 8, 20, 20)})

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        places = self.Mixed_6d["branch1x1"](pictures / 255)
        return pictures.float().mean((2, 3)), places.mean((2, 3))


def a_reference(file: Path, **more: np.ndarray) -> Path:
    pictures = np.random.RandomState(0).randint(0, 256, (30, 40, 40, 3), dtype=np.uint8)
    np.savez(file, arr_0=pictures, **more)
    return file


def test_features_of_a_reference_batch_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    file, network = a_reference(tmp_path / "reference.npz"), Tiny()
    real = real_pictures(file, network, CPU)
    pictures = np.load(file)["arr_0"]
    np.testing.assert_allclose(real.pooled, pictures.mean((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(real.fid.covariance, np.cov(pictures.mean((1, 2)).T), rtol=1e-3)
    assert real.sfid.mean.shape == (28,)
    monkeypatch.setattr("tasks.diffusion.inception.extract_features", None)
    assert np.array_equal(real_pictures(file, network, CPU).pooled, real.pooled)


def test_given_statistics_are_used_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    statistics = {"mu": np.full(3, 5.0), "sigma": np.eye(3), "mu_s": np.zeros(28), "sigma_s": 2 * np.eye(28)}
    real = real_pictures(a_reference(tmp_path / "reference.npz", **statistics), Tiny(), CPU)
    for values, name in zip((*real.fid, *real.sfid), statistics, strict=True):
        assert np.array_equal(values, statistics[name])


@pytest.mark.parametrize(
    ("arrays", "kind", "cause"),
    [
        ({"arr_1": np.zeros(1)}, "bad-file", KeyError),
        ({"arr_0": np.zeros((2, 3, 4, 4))}, "bad-data", type(None)),
        (None, "bad-file", ValueError),
    ],
)
def test_refuses_a_file_without_reference_pictures(
    arrays: dict[str, np.ndarray] | None, kind: Kind, cause: type, tmp_path: Path
) -> None:
    file = tmp_path / "reference.npz"
    file.write_text("no arrays") if arrays is None else np.savez(file, **arrays)
    with raises(kind, path=str(file)) as error:
        real_pictures(file, Tiny(), CPU)
    assert isinstance(error.value.__cause__, cause)


def test_samples_are_compared_by_the_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    real = real_pictures(a_reference(tmp_path / "reference.npz"), Tiny(), CPU)
    random = np.random.RandomState(1)
    samples = InceptionFeatures(real.pooled[:20] + 1, random.randn(20, 28), 3 * random.randn(20, 4))
    metrics = fid_scores(samples, real)
    assert metrics["fid"] == pytest.approx(frechet(normal(samples.pooled), real.fid))
    assert metrics["sfid"] == pytest.approx(frechet(normal(samples.spatial), real.sfid))
    order = np.random.RandomState(2020).permutation(20)
    shares = np.exp(samples.logits[order])
    shares /= shares.sum(1, keepdims=True)
    scores = [np.exp((part * np.log(part / part.mean(0))).sum(1).mean()) for part in np.split(shares, 10)]
    assert metrics["inception_score"] == pytest.approx(np.mean(scores))
    assert metrics["inception_score_se"] == pytest.approx(np.std(scores) / 10**0.5)
