"""ListOps: grammar, answers and independence of the number of processes."""

import random
import statistics

import pytest

from expect import raises
from tasks.lra import blocks
from tasks.lra.list_grammar import IDS, OPERATORS, Grammar, apply, generate, make_block, tokenize

PAPER = Grammar(500, 2000, 10, 10)
SHORT = Grammar(19, 65, 4, 5)
WORDS = {number: word for word, number in IDS.items() if word != "X"}

Tree = int | tuple[str, list["Tree"]]


def parse(ids: bytes) -> Tree:
    """The tree of a list: a digit, or an operator's name and arguments."""
    words = [WORDS[number] for number in ids]
    stack: list[tuple[str, list[Tree]]] = [("", [])]
    for word in words:
        if word.startswith("["):
            stack.append((word[1:], []))
        else:
            node = stack.pop() if word == "]" else int(word)
            stack[-1][1].append(node)
    ((_, (tree,)),) = stack
    return tree


def naive(tree: Tree) -> int:
    """The value of a tree by the paper's definition."""
    if isinstance(tree, int):
        return tree
    values = [naive(argument) for argument in tree[1]]
    return {
        "MIN": lambda: min(values),
        "MAX": lambda: max(values),
        "MED": lambda: int(statistics.median(values)),
        "SM": lambda: sum(values) % 10,
    }[tree[0]]()


def depth(tree: Tree) -> int:
    return 1 if isinstance(tree, int) else 1 + max(map(depth, tree[1]))


def operators(tree: Tree) -> list[tuple[str, int]]:
    if isinstance(tree, int):
        return []
    return [(tree[0], len(tree[1])), *(operator for argument in tree[1] for operator in operators(argument))]


def literal(draw: random.Random, level: int, grammar: Grammar) -> tuple[Tree, int]:
    """A tree and its length, drawn like the published generator's."""
    if level >= grammar.levels or draw.random() > 0.25:
        return draw.randrange(10), 1
    arguments = [literal(draw, level + 1, grammar) for _ in range(draw.randint(2, grammar.arguments))]
    return (draw.choice(OPERATORS), [tree for tree, _ in arguments]), 2 + sum(length for _, length in arguments)


@pytest.fixture(scope="module")
def lists() -> list[tuple[bytes, int]]:
    return make_block(SHORT, 0, 1000, 0)


def test_answers_match_a_naive_evaluation(lists: list[tuple[bytes, int]]) -> None:
    assert all(naive(parse(ids)) == answer for ids, answer in lists)


def test_lists_stay_within_the_grammar(lists: list[tuple[bytes, int]]) -> None:
    assert all(19 < len(ids) < 65 for ids, _ in lists)
    assert min(len(ids) for ids, _ in lists) == 20
    assert max(len(ids) for ids, _ in lists) > 50
    assert max(depth(parse(ids)) for ids, _ in lists) == 4
    assert {number for ids, _ in lists for _, number in operators(parse(ids))} == {2, 3, 4, 5}


def test_frequencies_match_the_published_recursion(
    lists: list[tuple[bytes, int]],
) -> None:
    draw, reference = random.Random(0), []
    while len(reference) < len(lists):
        tree, length = literal(draw, 1, SHORT)
        if 19 < length < 65:
            reference.append((tree, length))
    actual = [(parse(ids), len(ids)) for ids, _ in lists]
    for measure in (
        lambda tree, length: length,
        lambda tree, length: len(operators(tree)),
        lambda tree, length: statistics.mean(number for _, number in operators(tree)),
        lambda tree, length: tree[0] == "SM",
        lambda tree, length: naive(tree) == 9,
    ):
        first, second = ([float(measure(*each)) for each in some] for some in (reference, actual))
        error = (statistics.variance(first) / len(first) + statistics.variance(second) / len(second)) ** 0.5
        assert abs(statistics.mean(first) - statistics.mean(second)) < 4 * error


def test_lists_of_the_published_grammar_have_501_to_1999_tokens() -> None:
    lists = make_block(PAPER, 0, 40, 0)
    assert all(500 < len(ids) < 2000 for ids, _ in lists)
    assert all(naive(parse(ids)) == answer for ids, answer in lists)
    assert 9 <= max(depth(parse(ids)) for ids, _ in lists) <= 10


def test_the_median_of_an_even_number_of_digits_is_rounded_down() -> None:
    assert apply(OPERATORS.index("MED"), [9, 4, 5, 0]) == 4
    assert apply(OPERATORS.index("MED"), [9, 4, 1]) == 4


def test_lists_are_unique_and_do_not_depend_on_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasks.lra.list_grammar._BLOCK", 200)
    few = Grammar(3, 6, 2, 3)  # 4 * (10 ** 2 + 10 ** 3) possible lists, so that draws repeat
    batches = []
    for cores in (1, 2):
        monkeypatch.setattr(blocks, "_cores", lambda cores=cores: cores)
        batches.append(generate(few, 500, seed=3))
    monkeypatch.undo()
    monkeypatch.setattr("tasks.lra.list_grammar._BLOCK", 200)
    monkeypatch.setattr(blocks, "_cores", lambda: 1)
    assert batches[0] == batches[1]
    assert len({ids for ids, _ in batches[0]}) == 500
    assert batches[0] != generate(few, 500, seed=4)
    assert batches[0][:100] == generate(few, 100, seed=3)


def test_refuses_more_lists_than_the_grammar_has(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = Grammar(3, 5, 2, 2)
    few = make_block(grammar, 0, 5, 0)
    monkeypatch.setattr("tasks.lra.list_grammar.make_block", lambda *_: few)  # independent of the other lists
    monkeypatch.setattr(blocks, "_cores", lambda: 1)
    with raises("too-large", value=10_000, most=5):
        generate(grammar, 10_000, seed=0)


def test_refuses_a_grammar_without_lists() -> None:
    for wrong in ((0, 10, 3, 3), (10, 11, 3, 3), (1, 10, 1, 3), (1, 10, 3, 1)):
        with raises("infeasible") as caught:
            Grammar(*wrong)
        assert all(str(number) in caught.value.fields["grammar"] for number in wrong)


def test_reads_lists_in_the_releases_notation() -> None:
    notation = "( ( ( ( [MED 3 ) ( ( ( [SM 9 ) 0 ) ] ) ) 7 ) ] )"
    assert [WORDS[number] for number in tokenize(notation) or b""] == "[MED 3 [SM 9 0 ] 7 ]".split()
    assert tokenize(notation.replace("]", "X")) == tokenize(notation)
    assert tokenize("( [FIRST 3 ) ] )") is None
    assert tokenize("") is None
