import os
import subprocess
import sys
from dataclasses import asdict, replace

from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.parsing import parse_architecture

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


def test_the_key_of_an_architecture_never_changes() -> None:
    # Stored rows are found by this key: if it changes, old results can no longer be matched.
    assert BASE.key == "83d6424056"


def test_equal_architectures_have_equal_keys_however_they_are_spelt() -> None:
    one = parse_architecture("topology=hyper(streams=2,dynamic=false)", BASE)
    other = parse_architecture("topology= hyper( dynamic=false , streams=2)", BASE)
    assert one == other
    assert one.key == other.key
    assert one.key != BASE.key


def test_a_model_is_in_the_key_and_the_text_of_its_architectures_alone() -> None:
    one = parse_architecture("model=xcit_medium_24_p16_224,depth=12", BASE)
    assert (one.depth, one.heads, one.width) == (12, 8, 512)
    assert one.key != replace(one, model="xcit_small_24_p16_224").key
    assert parse_architecture(str(one), BASE) == one
    assert "model" not in str(BASE)


def test_the_key_does_not_depend_on_hash_randomisation() -> None:
    script = f"from search_spaces import Architecture; print(Architecture(**{asdict(BASE)}).key)"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        printed = subprocess.check_output([sys.executable, "-c", script], text=True, env=environment)
        assert printed.strip() == BASE.key
