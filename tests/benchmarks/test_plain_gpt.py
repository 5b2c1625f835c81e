"""The hand-written decoder equals GPT-2, the task's and Hugging Face's."""

import torch

from benchmarks.lm_throughput import TransformersGPT2, by_hand, sizes


def test_decoder_by_hand_computes_what_gpt2_does() -> None:
    task = sizes()["least"]
    plain, hugging_face = by_hand(task).eval(), TransformersGPT2(task).eval()
    inner = hugging_face.model.transformer
    ours = task.build(task.base)
    assert len({sum(weights.numel() for weights in model.parameters()) for model in (plain, hugging_face, ours)}) == 1
    with torch.no_grad():
        pairs = [(plain.tokens, inner.wte), (plain.places, inner.wpe), (plain.norm, inner.ln_f)]
        for block, other in zip(plain.blocks, inner.h, strict=True):
            pairs += [(block.norms[0], other.ln_1), (block.norms[1], other.ln_2)]
            pairs += [(block.qkv, other.attn.c_attn), (block.out, other.attn.c_proj)]
            pairs += [(block.up, other.mlp.c_fc), (block.down, other.mlp.c_proj)]
        for to, of in pairs:
            transposed = isinstance(to, torch.nn.Linear)  # theirs has [in, out]
            to.weight.copy_(of.weight.mT if transposed else of.weight)
            if getattr(to, "bias", None) is not None:
                to.bias.copy_(of.bias)
        ids = torch.randint(task.vocabulary, (2, task.context))
        torch.testing.assert_close(plain(ids), hugging_face(ids), rtol=0, atol=1e-5)
