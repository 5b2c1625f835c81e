"""Speed of stepping and learning in goal-point-maze, relative to bare loops of each.

The bare loops are gymnasium's SyncVectorEnv with random actions, and plain PyTorch updates of the same networks on one
fixed batch. The task also runs its policy, stores transitions and samples batches. The ratio is the bare loops' time
over the task's, for the steps and updates of a round, pair by pair, without evaluation. Shapes are proxy's, and sixteen
layers of width 256 with a fifth of the updates. One CPU thread.
"""

import statistics
import time
from dataclasses import replace

import torch
from gymnasium.vector import SyncVectorEnv

from benchmarks.form import Figure, main
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.residual_mlp import GoalAgent
from tasks.goal_rl.contrastive import actor_goals, critic_loss, sample_with_log_prob
from tasks.goal_rl.goal_tasks import GoalPointMaze
from tasks.goal_rl.recipe import GoalRecipe
from tasks.run import Run
from tasks.training.allocator import keep_freed_memory


def task_speeds(task: GoalPointMaze, shape: Architecture, recipe: GoalRecipe) -> tuple[float, float]:
    """Return steps and updates per second of the task's `fit`."""
    speeds = task.fit(Run(architecture=shape, recipe=recipe, seed=0)).speeds
    return speeds["env_steps_per_second"], speeds["updates_per_second"]


def bare_steps(task: GoalPointMaze, recipe: GoalRecipe) -> float:
    """Return steps per second of the vector of environments alone."""
    vector = SyncVectorEnv([lambda: task.environment(recipe.length)] * recipe.environments)
    vector.reset(seed=0)
    began = time.perf_counter()
    for _ in range(recipe.unroll * recipe.rounds):
        vector.step(vector.action_space.sample())
    speed = recipe.unroll * recipe.rounds * recipe.environments / (time.perf_counter() - began)
    vector.close()
    return speed


def bare_updates(task: GoalPointMaze, shape: Architecture, recipe: GoalRecipe) -> float:
    """Return updates per second of plain PyTorch on one batch."""
    agent, sizes = GoalAgent(shape, task.sizes), task.sizes
    log_alpha = torch.zeros((), requires_grad=True)
    critic = [*agent.phi.parameters(), *agent.psi.parameters()]
    groups = (list(agent.actor.parameters()), [log_alpha], critic)
    actor_step, alpha_step, critic_step = (torch.optim.Adam(group, lr=recipe.lr, fused=True) for group in groups)
    states, goals = torch.randn(recipe.batch, sizes.state), torch.randn(recipe.batch, sizes.goal)
    actions = torch.rand(recipe.batch, sizes.action) * 2 - 1
    began = time.perf_counter()
    for _ in range(recipe.updates * recipe.rounds):
        aims = actor_goals(goals, recipe.goals_of_others)
        action, log_prob = sample_with_log_prob(*agent.policy(states, aims), torch.randn(recipe.batch, sizes.action))
        distance = (agent.encode_state_action(states, action) - agent.encode_goal(aims)).norm(dim=1)
        actor_step.zero_grad()
        (log_alpha.exp().detach() * log_prob + distance).mean().backward()
        actor_step.step()
        alpha_step.zero_grad()
        (log_alpha.exp() * (-log_prob.detach() - recipe.entropy * sizes.action).mean()).backward()
        alpha_step.step()
        critic_step.zero_grad()
        critic_loss(agent.encode_state_action(states, actions), agent.encode_goal(goals), recipe.penalty).backward()
        critic_step.step()
    return recipe.updates * recipe.rounds / (time.perf_counter() - began)


def figures_of(shape: Architecture, recipe: GoalRecipe, suffix: str, pairs: int) -> dict[str, Figure]:
    """Measure the task and the bare loops alternately."""
    task, runs = GoalPointMaze(), []
    for turn in range(pairs + 1):
        ours = task_speeds(task, shape, recipe)
        with keep_freed_memory():  # as trainings do
            bare = bare_steps(task, recipe), bare_updates(task, shape, recipe)
        if turn:  # the first turn warms up
            runs.append((ours, bare))
    work = recipe.unroll * recipe.environments, recipe.updates
    ratio = statistics.median(_seconds(work, bare) / _seconds(work, ours) for ours, bare in runs)
    figures_by_name = {f"steps_and_updates_over_bare{suffix}": Figure(ratio, "ratio", "higher", target=0.95)}
    for place, speed in enumerate(("steps", "updates")):
        mine, alone = (statistics.median(pair[side][place] for pair in runs) for side in (0, 1))
        figures_by_name[f"{speed}_per_second{suffix}"] = Figure(
            mine, f"{speed}/s", "higher", peers={"bare loop": alone}
        )
    return figures_by_name


def figures(quick: bool) -> dict[str, Figure]:
    """Measure both shapes."""
    torch.set_num_threads(1)
    recipe = replace(GoalPointMaze.presets["proxy"], rounds=1 if quick else 3, reports=1, episodes=1)
    wide = replace(GoalPointMaze.base, depth=4, width=256, hidden=256)
    pairs = 2 if quick else 9
    return figures_of(GoalPointMaze.base, recipe, "", pairs) | figures_of(
        wide, replace(recipe, updates=recipe.updates // 5), "_wide", pairs
    )


def _seconds(work: tuple[int, int], speeds: tuple[float, float]) -> float:
    return work[0] / speeds[0] + work[1] / speeds[1]


if __name__ == "__main__":
    main("goal_rl", figures)
