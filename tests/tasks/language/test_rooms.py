import re

import pytest

from tasks.language.rooms import LONGEST, stories

STORIES = stories(300, seed=1)


@pytest.mark.parametrize("story", STORIES[:60])
def test_stories_agree_with_a_reader_who_follows_them(story: str) -> None:
    room: dict[str, str] = {}
    holder: dict[str, str] = {}  # thing -> person

    def place(name: str) -> str:
        return room[holder.get(name, name)]

    for sentence in re.findall(r"Where[^.]*\.|[^.?]+\.", story):
        match re.findall(r"\w+", sentence):
            case ["The", name, "is", "in", "the", here] | [name, "is", "in", "the", here]:
                room[name] = here
            case [person, "goes", "from", "the", before, "to", "the", after]:
                assert room[person] == before != after
                room[person] = after
            case [person, "takes", "the", thing]:
                assert thing not in holder
                assert room[thing] == room[person]
                holder[thing] = person
            case [person, "drops", "the", thing]:
                assert holder.pop(thing) == person
                room[thing] = room[person]
            case ["Where", "is", "the", name, "In", "the", answer] | ["Where", "is", name, "In", "the", answer]:
                assert place(name) == answer
            case words:
                pytest.fail(f"unknown sentence {words}")
    assert len(set(room.values())) <= 4


def test_every_kind_of_sentence_occurs() -> None:
    text = " ".join(STORIES)
    assert all(f" {verb} " in text for verb in ("goes", "takes", "drops"))
    assert re.search(r"(\w+) takes the (\w+)\. \1 goes from the \w+ to the (\w+)\. Where is the \2\? In the \3\.", text)


def test_no_story_is_longer_than_the_limit() -> None:
    lengths = [len(re.findall(r"\w+|[.?]", story)) for story in STORIES]
    assert LONGEST - 10 < max(lengths) <= LONGEST


def test_a_seed_gives_the_same_stories_in_any_number() -> None:
    assert stories(20, seed=1) == STORIES[:20] != stories(20, seed=2)
    assert len(set(STORIES)) == len(STORIES)
