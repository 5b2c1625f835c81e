"""Goal-conditioned contrastive reinforcement learning, without rewards, in MuJoCo.

Source: Wang et al., 1000 Layer Networks for Self-Supervised RL (2025) and its official code (scaling-crl), whose
settings Zhang et al., ANCRe (2026), section 5.3 keeps. They use Brax environments on a GPU. These tasks use those of
gymnasium and gymnasium-robotics, and each lists its differences.

    goal_tasks.py      the tasks by name, and goal:ENV_ID
    task.py            the base class: networks, metrics, fit
    environments.py    gymnasium environments by id
    vectors.py         several environments at once, in one process or several
    humanoid.py, fetch_table.py  environments that gymnasium lacks
    episodes.py        rollouts and evaluation
    replay_buffer.py   the replay buffer, and hindsight goals
    contrastive.py     losses and updates
    training.py        the training and its checkpoint
    render.py          an episode as a film

gymnasium is imported only when an environment is made: it comes with the extra "rl".
"""
