"""Diffusion: networks that take noise out of pictures, and are measured by what they draw.

`noise` is the process and what training makes smaller, `sampling` draws, `frechet` compares what is drawn with real
pictures, `task` is what all such tasks share, and each other module is one task.
"""
