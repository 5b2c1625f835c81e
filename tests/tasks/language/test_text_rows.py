import numpy as np
import pytest

from tasks.language.rows import IGNORED, Packed, Padded

END = 9
DOCUMENTS = [np.array([*document, END], dtype=np.int32) for document in ([1], [2, 3, 4], [5, 6, 7, 8, 1, 2], [3, 4])]


def padded_by_hand(documents: list[list[int]], context: int) -> list[list[int]]:
    rows = []
    for document in documents:
        kept = document if len(document) <= context else [*document[: context - 1], END]
        rows.append(kept + [IGNORED] * (context + 1 - len(kept)))
    return rows


@pytest.mark.parametrize("context", [2, 4, 5, 8])
def test_padded_rows_hold_a_document_each_cut_with_its_end_in_place(context: int) -> None:
    by_hand = padded_by_hand([document.tolist() for document in DOCUMENTS], context)
    assert Padded().grid(DOCUMENTS, context).tolist() == by_hand


def test_padded_rows_predict_nothing_from_the_last_position() -> None:
    assert (Padded().grid(DOCUMENTS, 4)[:, -1] == IGNORED).all()


@pytest.mark.parametrize("context", [1, 3, 4, 7, 16, 50])
def test_packed_rows_predict_every_token_of_every_document_once(context: int) -> None:
    grid = Packed().grid(DOCUMENTS, context)
    following = grid[:, 1:].ravel()
    assert following[following != IGNORED].tolist() == np.concatenate(DOCUMENTS).tolist()
    assert (following[len(np.concatenate(DOCUMENTS)) :] == IGNORED).all()


@pytest.mark.parametrize("context", [1, 3, 7])
def test_packed_rows_read_what_the_row_before_predicted_last(context: int) -> None:
    grid = Packed().grid(DOCUMENTS, context)
    assert grid[0, 0] == END
    assert grid[1:, 0].tolist() == grid[:-1, -1].tolist()


@pytest.mark.parametrize("layout", [Packed(), Padded()])
def test_no_documents_are_no_rows(layout: Packed | Padded) -> None:
    assert layout.grid([], 4).shape == (0, 5)
