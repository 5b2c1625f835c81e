"""Language modeling: text, tokens, rows, decoders and losses.

stdlib, hub         sources of text             corpus            splits and fingerprint
shards              documents by number         stream            shuffled rows from any position
tokenizer           text to tokens              row_layouts       tokens to rows, padded or packed
document_blocks     tokens of documents         data              training and evaluation batches
measure             metrics                     baselines         metrics of simple methods
language_presets    recipes                     task              base classes
stdlib_lm           the embedded task           published_tasks   the papers' tasks
rooms               generated stories           rooms_lm          their task
ngrams              Kneser-Ney n-grams
masked              masked language modeling    masked_tasks      its tasks
scoring             likelihoods for lm-eval
"""
