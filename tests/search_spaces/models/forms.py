"""Representative topologies for tests of models."""

FORMS = ["resnet", "dca", "deepnorm", "rezero(norms=false)", "rmt", "depth-lstm", "svformer"]
"""One per way of changing layers: inputs, norms, projections and outputs."""
