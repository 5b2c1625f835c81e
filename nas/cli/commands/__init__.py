"""The commands, a function each: its parameters are the options, its body the call of the API and what is printed.

What a command needs is loaded when it is called: the API through `nas`, what prints its results through
`nas.cli.printers`.
"""
