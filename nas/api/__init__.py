"""The functions of the package, one a module: `nas.search` in Python and `nas search` on the command line are the same.

The parameters of a function are the options of its command; `nas.cli.options` has their help. Modules here import what
they need at their top: `nas` loads them when a function is first used.
"""
