"""Topologies that stand for all of them where a model is tested with each kind."""

FORMS = ["resnet", "dca", "deepnorm", "rezero(norms=false)", "rmt", "depth-lstm", "svformer"]
"""Of each way in which a topology changes layers one: what they read, norm, project and leave to it."""
