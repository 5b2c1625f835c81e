import numpy as np

from tasks.language.row_layouts import IGNORE_INDEX, PackedLayout, PaddedLayout

END = 9
DOCUMENTS = [np.array([*document, END], dtype=np.int32) for document in ([1], [2, 3, 4], [5, 6, 7, 8, 1, 2], [3, 4])]


def padded_by_hand(documents: list[list[int]], context: int) -> list[list[int]]:
    rows = []
    for document in documents:
        ids = document if len(document) <= context else [*document[: context - 1], END]
        rows.append(ids + [IGNORE_INDEX] * (context + 1 - len(ids)))
    return rows


def test_padded_rows_hold_one_document_each() -> None:
    documents, contexts = [document.tolist() for document in DOCUMENTS], (2, 4, 5, 8)
    grids = {context: PaddedLayout().grid(DOCUMENTS, context).tolist() for context in contexts}
    assert grids == {context: padded_by_hand(documents, context) for context in contexts}


def test_padded_rows_predict_nothing_from_the_last_position() -> None:
    assert (PaddedLayout().grid(DOCUMENTS, 4)[:, -1] == IGNORE_INDEX).all()


def test_packed_rows_predict_every_token_once() -> None:
    for context in (1, 3, 4, 7, 16, 50):
        following = PackedLayout().grid(DOCUMENTS, context)[:, 1:].ravel()
        assert following[following != IGNORE_INDEX].tolist() == np.concatenate(DOCUMENTS).tolist(), context
        assert (following[len(np.concatenate(DOCUMENTS)) :] == IGNORE_INDEX).all(), context


def test_packed_rows_begin_with_the_last_token_of_the_row_before() -> None:
    for context in (1, 3, 7):
        grid = PackedLayout().grid(DOCUMENTS, context)
        assert grid[0, 0] == END, context
        assert grid[1:, 0].tolist() == grid[:-1, -1].tolist(), context


def test_no_documents_give_no_rows() -> None:
    for layout in (PackedLayout(), PaddedLayout()):
        assert layout.grid([], 4).shape == (0, 5), layout
