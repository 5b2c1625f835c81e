"""The commands, a function each: its parameters are the options, its body the call of the API and what is printed.

The text of a call is checked first, by what loads no torch. Then `nas` loads the function of the API, and
`nas.cli.printers` what prints its result.
"""
