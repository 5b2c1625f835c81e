"""GLUE (Wang et al., 2019): fine-tuning of a masked encoder on text classification.

`sets` defines the sets, `glue_files` reads them and `corpus_sets` builds two similar ones. `scores` are GLUE's metrics,
`token_rows` tokenizes texts, `fine_tuning` trains on one set, and `task` pre-trains and then fine-tunes on each set.
"""
