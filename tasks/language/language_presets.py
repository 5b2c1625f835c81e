"""Recipes of language modeling: quick ones and published ones, each with its source.

A recipe's source says where this project deviates from it, or where it is silent. Published recipes are for one device;
their `accumulate` is for 80 GB of memory or more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import Initial
from search_spaces.support.spec import Spec
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import NOT_A_SETTING, NotNegative


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRecipe(Recipe):
    """A recipe for text. Its examples are rows; their number is unknown unless the text is in memory, so use `steps`.

    Attributes:
        z_loss: Weight of the squared log of the softmax's denominator in the training loss (Chowdhery et al., PaLM,
            2022, section 5); not part of the metrics.
        initial: Initialization of the decoder: "" for its style's own, or "lecun". A topology may have its own option.
        recompute: Whether to recompute layers in the backward pass, which saves memory.
        source: Source of the recipe.
    """

    z_loss: NotNegative = 0.0
    initial: Initial = ""
    recompute: bool = False
    source: str = field(default="", metadata=NOT_A_SETTING)


Recipes = Mapping[str, LanguageRecipe]
Bases = Mapping[str, Architecture]

SMOKE = LanguageRecipe(steps=2, batch=2, lr=1e-3, measured=8, reports=2)
"""Two steps of any network: a test that everything runs."""

# ANCRe (Zhang et al., 2026), section 5.1, table 7 and the official code, in the set-up of GaLore (Zhao et al., 2024):
# AdamW without decay or clipping. The code's weights are bfloat16 throughout, as here. For GaLore, appendix C gives
# rank 128 at every size (the code's script for 130M passes 256), gap 200 and scale 0.25; table 7 gives its learning
# rates. GaLore needs whole matrices, so its 1B row uses ddp.
_ANCRE = LanguageRecipe(
    steps=10_000,
    batch=512,
    lr=5e-3,
    weight_decay=0.0,
    floor=0.1,
    clip=0.0,
    accumulate=4,
    precision="bf16-true",
    compile=True,
    measured=46_500,  # ten million tokens, as in the paper: 215 of 256 positions are not padding
    source="ANCRe (2026), full pre-training, section 5.1; test and validation share its validation data",
)
_ANCRE_ROWS: Recipes = {
    "ancre-60m": _ANCRE,
    "ancre-130m": replace(_ANCRE, steps=20_000, lr=1e-3),
    "ancre-350m": replace(_ANCRE, steps=60_000, lr=1e-3, accumulate=8),
    "ancre-1b": replace(_ANCRE, steps=100_000, lr=5e-4, accumulate=32, recompute=True, compile=False, sharing="fsdp"),
}
_GALORE_RATES = {"ancre-60m": 1e-2, "ancre-130m": 5e-2, "ancre-350m": 5e-2, "ancre-1b": 5e-3}
_GALORE_ROWS: Recipes = {
    f"{name}-galore": replace(
        _ANCRE_ROWS[name], optimizer="galore(rank=128,gap=200,scale=0.25)", lr=lr, sharing="ddp",
        source="ANCRe (2026), GaLore, section 5.1 and table 7; rank, gap and scale of appendix C",
    )
    for name, lr in _GALORE_RATES.items()
}  # fmt: skip
C4: Recipes = {
    "smoke": SMOKE,
    "proxy": replace(
        _ANCRE, steps=1_000, batch=128, lr=2e-3, accumulate=1, clip=1.0, precision="bf16-mixed", measured=2_000,
        source="a minute of a large GPU at the base's size",
    ),
    "paper": _ANCRE,
    **_ANCRE_ROWS,
    **_GALORE_ROWS,
}  # fmt: skip
_LLAMA: Bases = {
    "ancre-60m": Architecture(depth=8, width=512, heads=8, head_dim=64, hidden=1376),
    "ancre-130m": Architecture(depth=12, width=768, heads=12, head_dim=64, hidden=2048),
    "ancre-350m": Architecture(depth=24, width=1024, heads=16, head_dim=64, hidden=2736),
    "ancre-1b": Architecture(depth=24, width=2048, heads=32, head_dim=64, hidden=5461),
}
C4_BASES: Bases = {**_LLAMA, **{f"{name}-galore": base for name, base in _LLAMA.items()}}

# DeepCrossAttention (Heddes et al., 2025), section 5: sequences of 128, batches of 2048, AdamW, inverse square root.
# Its network is flax's lm1b example, the source of betas and decay. There every parameter decays and epsilon is 1e-9;
# here only matrices decay and epsilon is 1e-8.
_DCA = LanguageRecipe(
    steps=500_000,
    batch=2048,
    lr=1.6e-3,
    weight_decay=0.1,
    betas=(0.9, 0.98),
    warmup=0.002,
    schedule="inverse-sqrt",
    clip=0.0,
    accumulate=8,
    precision="bf16-mixed",
    compile=True,
    measured=10_000,
    source="DeepCrossAttention (2025), section 5; no dropout, which the paper does not mention",
)
_DCA_PROXY = replace(
    _DCA, steps=1_000, batch=256, accumulate=1, warmup=0.05, measured=2_000,
    source="a minute of a large GPU at the base's size",
)  # fmt: skip
LM1B: Recipes = {"smoke": SMOKE, "proxy": _DCA_PROXY, "paper": _DCA, "dca-lm1b": _DCA}
LM1B_BASES: Bases = {"dca-lm1b": Architecture(depth=6, width=512, heads=8, head_dim=64, hidden=2048)}
# The paper gives depth, width and parameters. Attention width 256, feed-forward factor 4 and 32,000 tied words are
# fitted to its five parameter counts, which leave out norms and biases.
C4_DCA: Recipes = {
    "smoke": SMOKE, "proxy": _DCA_PROXY, "paper": _DCA,
    "dca-75m": _DCA, "dca-124m": _DCA, "dca-179m": _DCA, "dca-234m": _DCA, "dca-449m": replace(_DCA, accumulate=16),
}  # fmt: skip
C4_DCA_BASES: Bases = {
    "dca-75m": Architecture(depth=9, width=771, heads=4, head_dim=64, hidden=4 * 771),
    "dca-124m": Architecture(depth=18, width=771, heads=4, head_dim=64, hidden=4 * 771),
    "dca-179m": Architecture(depth=13, width=1111, heads=4, head_dim=64, hidden=4 * 1111),
    "dca-234m": Architecture(depth=18, width=1111, heads=4, head_dim=64, hidden=4 * 1111),
    "dca-449m": Architecture(depth=18, width=1600, heads=4, head_dim=64, hidden=4 * 1600),
}

# Residual matrix transformers (Mak and Flanigan, 2025), appendix C.1 and tables 8 and 9. Weight decay is 1e-4 per step
# at the peak, whatever the learning rate; AdamW multiplies by the rate, hence the division. C.1 exempts layer norms,
# the embedding and the unembedding, also in the transformers that it compares with.
_RMT_LR = 1e-2
_RMT = LanguageRecipe(
    steps=5_000,
    batch=64,
    lr=_RMT_LR,
    weight_decay=1e-4 / _RMT_LR,
    without_decay=("embedding", "head"),
    betas=(0.9, 0.95),
    warmup=0.05,
    floor=0.1,
    clip=1.0,
    precision="bf16-mixed",
    compile=True,
    recompute=True,
    z_loss=1e-4,
    measured=10_000,
    source="residual matrix transformers (2025), appendix C; lr of C.3 and C.4, since table 8 has muP's",
)
_RMT_TABLES: Mapping[str, tuple[int, int, Architecture]] = {  # training tokens, rows per batch, architecture
    "transformer-49m": (212_000_000, 64, Architecture(depth=6, width=384, heads=12, head_dim=32, hidden=1536)),
    "transformer-160m": (1_700_000_000, 64, Architecture(depth=12, width=768, heads=12, head_dim=64, hidden=3072)),
    "transformer-260m": (3_500_000_000, 64, Architecture(depth=18, width=896, heads=14, head_dim=64, hidden=3584)),
    "transformer-405m": (6_000_000_000, 256, Architecture(depth=24, width=1024, heads=16, head_dim=64, hidden=4096)),
    "rmt-46m": (
        142_000_000, 64,
        Architecture(depth=6, width=384, heads=12, head_dim=32, hidden=1536, topology="rmt(keys=32)"),
    ),
    "rmt-134m": (
        1_100_000_000, 64,
        Architecture(depth=12, width=768, heads=12, head_dim=64, hidden=3072, topology="rmt(keys=32)"),
    ),
    # The paper's columns are shifted in the next two rows; these keys give the parameters it prints.
    "rmt-206m": (
        2_300_000_000, 64,
        Architecture(depth=18, width=896, heads=14, head_dim=64, hidden=3584, topology="rmt(keys=48)"),
    ),
    "rmt-305m": (
        6_000_000_000, 256,
        Architecture(depth=24, width=1024, heads=16, head_dim=64, hidden=4096, topology="rmt(keys=64)"),
    ),
}  # fmt: skip
# The comparison of topologies (section 4.3, C.4 and table 10): LeCun initialization, 5,000 steps of 64 rows. C.4 calls
# this 1.6 billion tokens, ten times 5,000 x 64 x 512.
_RMT_VARIANTS = replace(_RMT, initial="lecun", source="residual matrix transformers (2025), section 4.3 and C.4")
_RMT_VARIANT_BASE = _RMT_TABLES["transformer-160m"][2]
_RMT_VARIANT_BASES: Bases = {
    "variants-transformer": _RMT_VARIANT_BASE,
    "variants-rmt": replace(_RMT_TABLES["rmt-134m"][2], topology="rmt(keys=32,initial=lecun)"),
    "variants-highway": replace(_RMT_VARIANT_BASE, topology="highway(form=highway,initial=lecun)"),
    "variants-depth-lstm": replace(_RMT_VARIANT_BASE, topology="depth-lstm(initial=lecun)"),
    "variants-aggregation": replace(_RMT_VARIANT_BASE, topology="aggregation(features=128,initial=lecun)"),
}
RMT_CONTEXT = 512
OPENWEBTEXT: Recipes = {
    "smoke": SMOKE,
    "proxy": replace(_RMT, steps=500, recompute=False, measured=2_000, source="a minute of a large GPU"),
    "paper": _RMT,
    **{name: replace(_RMT, steps=tokens // (rows * RMT_CONTEXT), batch=rows, accumulate=rows // 64)
       for name, (tokens, rows, _) in _RMT_TABLES.items()},
    **dict.fromkeys(_RMT_VARIANT_BASES, _RMT_VARIANTS),
}  # fmt: skip
OPENWEBTEXT_BASES: Bases = {
    **{name: architecture for name, (_, _, architecture) in _RMT_TABLES.items()},
    **_RMT_VARIANT_BASES,
}


def _with_rms(topology: str) -> str:
    spec = Spec.parse(topology)
    return str(Spec(spec.name, {**spec.options, "norm": "rms"})) if spec.name == "rmt" else topology


# The official code's decoder and norm. Its own example shares no sizes or steps with the paper's rows.
WIKITEXT = OPENWEBTEXT
WIKITEXT_BASES: Bases = {
    name: replace(base, topology=_with_rms(base.topology)) for name, base in OPENWEBTEXT_BASES.items()
}

# Leaner Transformers (2025), table 3, gives layers, heads, loss and parameters, but no recipe: this one is nanoGPT's.
_TINYSTORIES = LanguageRecipe(
    steps=20_000,
    batch=64,
    lr=6e-4,
    weight_decay=0.1,
    betas=(0.9, 0.95),
    warmup=0.02,
    floor=0.1,
    precision="bf16-mixed",
    compile=True,
    measured=10_000,
    source="shapes of Leaner Transformers (2025), table 3; the paper gives no recipe, so it is nanoGPT's",
)
TINYSTORIES: Recipes = {
    "smoke": SMOKE,
    "proxy": replace(_TINYSTORIES, steps=500, measured=2_000, source="a minute of a large GPU"),
    "paper": _TINYSTORIES,
    "gpt2-tinystories": _TINYSTORIES,
    "gpt2-tinystories-lean": _TINYSTORIES,
}
# Width 512 gives the printed parameters; 12 heads do not divide it, and 43 is the nearest head dimension.
TINYSTORIES_BASES: Bases = {
    "gpt2-tinystories": Architecture(depth=12, width=512, heads=12, head_dim=43, hidden=2048),
    "gpt2-tinystories-lean": Architecture(depth=4, width=512, heads=16, head_dim=32, hidden=2048),
}
