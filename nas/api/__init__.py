"""The functions of the package, one in each module: `nas.search` in Python is `nas search` on the command line.

A function's parameters are the options of its command; `nas.cli.options` has their help. Modules here import what they
need at the top: `nas` loads each when its function is first used.
"""
