"""Diffusion tasks: networks that denoise pictures, evaluated by the samples they generate.

`noise` is the process and its loss, `sampling` generates pictures, `frechet` compares them with real ones, and `task`
is the base class. Each other module is a task or a part of one.
"""
