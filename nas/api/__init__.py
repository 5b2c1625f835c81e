"""What can be done, a function each: `nas.search` in Python and `nas search` on the command line are the same.

A function's parameters are the command's options; `nas.cli.options` has what each means. The imports stand inside the
functions, so that neither `import nas` nor `nas --help` loads torch.
"""
