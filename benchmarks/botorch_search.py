"""BoTorch's search over the same feasible set, for comparison: a Gaussian process of the loss, and qLogNEHVI.

S. Daulton, M. Balandat and E. Bakshy, "Parallel Bayesian Optimization of Multiple Noisy Objectives with Expected
Hypervolume Improvement" (NeurIPS 2021), in the logarithmic form of S. Ament et al., "Unexpected Improvements to
Expected Improvement for Bayesian Optimization" (NeurIPS 2023). The model is BoTorch's default with fitted noise. It
knows FLOPs exactly, as this project's search does, and uses the same coordinates.
"""

import warnings

import numpy as np
import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.model import ModelList
from botorch.models.transforms import Standardize
from botorch.models.transforms.input import FilterFeatures
from botorch.sampling.get_sampler import get_sampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from nas.samplers.encoding import CandidateEncoding
from nas.samplers.proposer import Proposer, SearchState
from results.stats.gaussian_process import Array, Indices

START, POOL = 8, 500
"""Random trials at the start, and the most candidates scored for a proposal, as in this project's search."""

SAMPLES, STEPS = 64, 75
"""Posterior samples, and fitting steps; fitting to convergence takes five times as long."""


class NoisyHypervolume(Proposer):
    """A proposer of the candidate with the highest qLogNEHVI; it repeats no architecture."""

    def propose(self, state: SearchState) -> int:
        """Return the candidate with the highest acquisition value; a random one during the first START trials."""
        random = np.random.default_rng(state.seed)
        trials = state.trials
        indices = trials.indices[trials.has_values]
        if len(indices) < START:
            return int(random.choice(state.random_members))
        pool = random.permutation(state.new)[:POOL].astype(np.intp)
        torch.manual_seed(state.seed)
        candidates = np.concatenate([indices, pool])
        flops = state.cost_matrix(candidates)[:, 1]
        at = features(state.coordinates, candidates, flops / flops.max())
        model = loss_model(at[: len(indices)], trials.values[trials.has_values][:, 0])
        values = torch.stack(
            [-torch.from_numpy(trials.values[trials.has_values][:, 0].copy()), -at[: len(indices), -1]], dim=1
        )
        both = ModelList(model, GenericDeterministicModel(lambda x: -x[..., -1:]))
        improvement = qLogNoisyExpectedHypervolumeImprovement(
            both,
            ref_point=infer_reference_point(values[is_non_dominated(values)]),
            X_baseline=at[: len(indices)],
            sampler=get_sampler(both.posterior(at[:1]), torch.Size([SAMPLES]), seed=int(random.integers(2**31))),
            prune_baseline=True,
            cache_root=False,
        )
        with torch.no_grad():
            gains = torch.cat([improvement(some[:, None]) for some in at[len(indices) :].split(100)])
        return int(pool[int(gains.argmax())])


def features(coordinates: CandidateEncoding, at: Indices, flops: Array) -> Tensor:
    """Return the features of candidates with their FLOPs as the last column: [C, F + 1]."""
    places = coordinates.features.at(at)
    return torch.from_numpy(np.concatenate([places.numeric, places.one_hot, flops[:, None]], axis=1))


def loss_model(at: Tensor, losses: Array) -> SingleTaskGP:
    """Fit a process of the negative loss to the features without FLOPs."""
    model = SingleTaskGP(
        at,
        -torch.from_numpy(losses.copy())[:, None],
        input_transform=FilterFeatures(torch.arange(at.shape[1] - 1)),
        outcome_transform=Standardize(1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warns if it has not converged
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": STEPS}})
    return model


def posterior_means(coordinates: CandidateEncoding, at: Indices, losses: Array) -> Array:
    """Return the posterior mean losses of the trained candidates: [N]."""
    places = features(coordinates, at, np.zeros(len(at)))
    model = loss_model(places, losses)
    with torch.no_grad():
        mean: Tensor = model.posterior(places).mean
    return -mean[:, 0].numpy()
