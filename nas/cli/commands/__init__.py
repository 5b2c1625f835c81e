"""The commands, one function each: its parameters are the options, its body calls the API and prints the result.

A command first checks the texts of its options, without torch. Then `nas` loads the function of the API, and
`nas.cli.printers` loads the printer.
"""
