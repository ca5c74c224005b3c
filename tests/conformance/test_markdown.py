"""Tests of the comparison between the app's Markdown and specifications, on invented examples.

The comparison must find each difference, and must not report equal blocks as different.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.examples import Specification, read_specification
from tests.conformance.html_reader import shape_of_html
from tests.conformance.markdown import compare
from tests.conformance.shape import shape_of_text

SAME = {
    "marks": (
        "a *b* **c**\n`d`  \ne",
        "<p>a <em>b</em> <strong>c</strong>\n<code>d</code><br />e</p>",
    ),
    "headings": ("## a\nb\n\n---", "<h2>a</h2>\n<p>b</p>\n<hr />"),
    "loose": ("- a\n\n- b", "<ul>\n<li>\n<p>a</p>\n</li>\n<li>\n<p>b</p>\n</li>\n</ul>"),
    "nested": (
        "- a\n\n  3. b\n-",
        '<ul><li>a<ol start="3">\n<li>b</li>\n</ol></li><li></li></ul>',
    ),
    "task": ("- [x] a", '<ul>\n<li><input checked="" type="checkbox"> a</li>\n</ul>'),
    "quote": (
        "> ```py x\n>   a\n> ```",
        '<blockquote>\n<pre><code class="language-py">  a\n</code></pre>\n</blockquote>',
    ),
    "table": (
        "|a|b|\n|-|-:|\n|c||",
        '<table><tr><th>a</th><th align="right">b</th></tr><tr><td>c</td><td align="right"></td></tr></table>',
    ),
    "breaks": ("a\nb\\\nc", "<p>a\nb<br />\nc</p>\n"),
    "image": ("![a](b) ![](c)", '<p><img src="b" alt="a" /> <img src="c" alt="" /></p>'),
}
OTHER = {
    "level": ("# a", "<h2>a</h2>"),
    "number": ("2. a", "<ol><li>a</li></ol>"),
    "nesting": ("- a\n- b", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
    "language": ("```\na\n```", '<pre><code class="language-a">a\n</code></pre>'),
    "blanks in code": ("```\na  b\n```", "<pre><code>a b\n</code></pre>"),
    "align": ("|a|\n|-:|", "<table><thead><tr><th>a</th></tr></thead></table>"),
    "break": ("a\nb", "<p>a b</p>"),
}
FENCE = "`" * 32


@pytest.mark.parametrize("name", SAME)
def test_shapes_of_equal_markdown_and_html_are_equal(name: str) -> None:
    markdown, html = SAME[name]

    assert list(shape_of_text(markdown).lines()) == list(shape_of_html(html).lines())


@pytest.mark.parametrize("name", OTHER)
def test_shapes_of_different_markdown_and_html_differ(name: str) -> None:
    markdown, html = OTHER[name]

    assert shape_of_text(markdown) != shape_of_html(html)


def test_html_element_that_markdown_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="<div>"):
        shape_of_html("<div></div>")


def test_specification_file_is_read_and_compared(tmp_path: Path) -> None:
    file = tmp_path / "spec.txt"
    examples = ("a\n.\n<p>a</p>", "<b>\n.\n<b>", "\u2192x\n.\n<pre><code>y\n</code></pre>")
    body = "\n".join(f"{FENCE} example\n{example}\n{FENCE}" for example in examples)
    file.write_text(
        f"---\ntitle: Some Spec\nversion: '1.2'\n---\n# One\n{body}\n", encoding="utf-8"
    )

    read = read_specification(file)

    assert isinstance(read, Specification)
    assert read.edition == "Some 1.2"
    assert [example.has_raw_html for example in read.examples] == [False, True, False]
    (difference,) = compare(read)
    assert (difference.example.number, difference.example.section) == (3, "One")
    assert "NO REASON" in str(difference)


def test_file_that_is_no_specification_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("# Notes\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"notes\.txt"):
        read_specification(file)
