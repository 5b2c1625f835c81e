"""GLUE (Wang et al., 2019): what an encoder that was trained on masked text is worth where texts are to be judged.

`sets` says what the sets are, `files` reads them and `made` makes two of their kind; `scores` are GLUE's, `rows` makes
tokens of texts, `fine_tuning` trains on one set, and `task` is the whole: a pre-training, and then each set.
"""
