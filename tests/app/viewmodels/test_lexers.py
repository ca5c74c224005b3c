from __future__ import annotations

import pytest

from app.viewmodels.lexers import load_language


@pytest.mark.parametrize(
    ("name", "needs"), [("go", True), ("c", True), ("rust", False), ("bash", False)]
)
def test_needs_comment_end_is_true_if_a_comment_is_one_token(name: str, needs: bool) -> None:
    language = load_language(name)
    assert language is not None
    assert language.needs_comment_end is needs


@pytest.mark.parametrize("name", ["cs", "c#", "nemerle", "inform7"])
def test_lexers_with_variants_have_state_tables(name: str) -> None:
    language = load_language(name)
    assert language is not None
    assert language.tables
