"""What every test has: one thread, and the toy tasks by import."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent / "nas"))
torch.set_num_threads(1)
