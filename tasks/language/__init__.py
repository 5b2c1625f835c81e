"""Language modelling: from text to rows of tokens, to a decoder, to a loss.

stdlib, hub         where text is          corpus      its splits and fingerprint
shards              how it is read         stream      in which order, from any position on
tokenizer           text to tokens         rows        tokens to rows: padded or packed
data                what a training sees   measure     what is reported; baselines: what simple methods reach
presets             recipes                task        what all language tasks share
stdlib_lm           the embedded task      published   the papers' tasks
"""
