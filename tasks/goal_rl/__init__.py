"""Reaching goals without rewards: contrastive reinforcement learning in MuJoCo.

Source: Wang et al., 1000 Layer Networks for Self-Supervised RL (2025) and its official code (scaling-crl), whose
settings Zhang et al., ANCRe (2026), section 5.3 keeps. They run Brax environments on a GPU; these are gymnasium's and
gymnasium-robotics', and each task says how it differs.

    catalog.py       the tasks by name, and goal:ENV_ID
    task.py          what they share: networks, presets, metrics, fit
    environments.py  gymnasium's environments by id
    vectors.py       several of them at once, in one process or in several
    humanoid.py, table.py  the environments that gymnasium has not as they are needed
    episodes.py      stepping a policy, and measuring it
    replay.py        the replay buffer, and goals drawn from it
    contrastive.py   losses and updates
    training.py      the loop, and its checkpoint
    render.py        an episode as a film

Nothing here imports gymnasium until an environment is made: it comes with the extra "rl".
"""
