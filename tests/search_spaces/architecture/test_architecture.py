import os
import subprocess
import sys
from dataclasses import asdict, replace

from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.parsing import parse_architecture

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


def test_the_key_of_an_architecture_never_changes() -> None:
    # A changed key would orphan stored rows.
    assert BASE.key == "83d6424056"


def test_equal_architectures_have_equal_keys_in_any_spelling() -> None:
    first = parse_architecture("topology=hyper(streams=2,dynamic=false)", BASE)
    other = parse_architecture("topology= hyper( dynamic=false , streams=2)", BASE)
    assert first == other
    assert first.key == other.key
    assert first.key != BASE.key


def test_a_model_is_in_the_key_and_the_text_of_its_architectures_alone() -> None:
    first = parse_architecture("model=xcit_medium_24_p16_224,depth=12", BASE)
    assert (first.depth, first.heads, first.width) == (12, 8, 512)
    assert first.key != replace(first, model="xcit_small_24_p16_224").key
    assert parse_architecture(str(first), BASE) == first
    assert "model" not in str(BASE)


def test_the_key_does_not_depend_on_hash_randomisation() -> None:
    script = f"from search_spaces import Architecture; print(Architecture(**{asdict(BASE)}).key)"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        output = subprocess.check_output([sys.executable, "-c", script], text=True, env=environment)
        assert output.strip() == BASE.key
