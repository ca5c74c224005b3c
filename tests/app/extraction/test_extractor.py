"""The extraction process: kinds, encodings, and files that are refused."""

from __future__ import annotations

import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QPainter, QPdfWriter

from app.extraction import packages
from app.extraction.extractor import Extractor
from app.extraction.program import FileReading
from app.extraction.refusal import Refused, RefusedFileError
from app.stopping import StoppedError
from app.words import attachments as words
from engine.worker.frames import Frame
from tests.fakes import hostile_files as files

TEXT = "Ein Satz über Zürich.\nA second line."
HTML = (
    "<html><head><title>T</title><style>p {}</style></head><body><h1>Top</h1><p>One\n two</p>"
    "<script>no()</script><ul><li>a<li>b</ul><pre>x\n  y</pre></body></html>"
)


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    extractor = Extractor()
    yield extractor
    extractor.close()


def read(extractor: Extractor, path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return extractor.read(path).attachment.text


def why(extractor: Extractor, path: Path) -> Refused:
    with pytest.raises(RefusedFileError) as refused:
        extractor.read(path)
    return refused.value.why


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"]
)
def test_text_in_every_encoding_is_read(
    extractor: Extractor, tmp_path: Path, encoding: str
) -> None:
    data = TEXT.replace("\n", "\r\n").encode(encoding)
    assert read(extractor, tmp_path / "a.py", data) == TEXT


def test_html_becomes_the_text_that_the_page_shows(extractor: Extractor, tmp_path: Path) -> None:
    text = read(extractor, tmp_path / "a.html", HTML.encode())
    assert text == "# Top\n\nOne two\n\n- a\n- b\n\nx\n  y"


def test_pages_of_a_pdf_are_marked_and_counted(extractor: Extractor, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(files.pdf_of("First page", "", "Third page"))

    attachment = extractor.read(path).attachment

    assert attachment.text == "[Page 1]\nFirst page\n\n[Page 3]\nThird page"
    assert (attachment.name, attachment.kind, attachment.num_pages) == ("a.pdf", "pdf", 3)


@pytest.mark.usefixtures("qapp")
def test_words_of_a_pdf_that_qt_wrote_have_spaces_between_them(
    extractor: Extractor, tmp_path: Path
) -> None:
    path = tmp_path / "printed.pdf"
    writer = QPdfWriter(str(path))
    painter = QPainter(writer)
    painter.drawText(QPoint(500, 500), "Emma visited the old house")
    painter.end()

    text = extractor.read(path).attachment.text

    assert text == "[Page 1]\nEmma visited the old house"


def test_word_document_keeps_paragraphs_and_cells_and_drops_deleted_text(
    extractor: Extractor, tmp_path: Path
) -> None:
    cell = "<w:tc>{}</w:tc>"
    table = "<w:tbl><w:tr>" + cell.format(files.paragraph("a")) + cell.format(files.paragraph("b"))
    deleted = "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
    body = files.paragraph("Title") + deleted + table + "</w:tr></w:tbl>" + files.paragraph("End")
    text = read(extractor, tmp_path / "a.docx", files.docx_of(body))
    assert text.split() == ["Title", "a", "b", "End"]
    assert "a\tb" in text


def test_chapters_of_an_epub_are_in_reading_order(extractor: Extractor, tmp_path: Path) -> None:
    data = files.epub_of("<html><body><p>One</p></body></html>", "<html><body>Two</body></html>")
    assert read(extractor, tmp_path / "a.epub", data) == "One\n\nTwo"


def test_very_long_text_is_cut(extractor: Extractor, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"line of a log\n" * 400_000)

    result = extractor.read(path)

    assert result.is_cut
    assert len(result.attachment.text) <= 4_000_000


def test_hostile_files_are_refused_or_read_and_leave_nothing_behind(
    extractor: Extractor, tmp_path: Path
) -> None:
    paths = files.write_hostile_files(tmp_path, each=4, slow=False)
    before = sorted(tmp_path.iterdir())
    refused: dict[str, Refused] = {}
    for path in paths:
        try:
            assert extractor.read(path).attachment.text
        except RefusedFileError as refusal:
            refused[path.name] = refusal.why

    assert len(paths) > 50
    assert sorted(tmp_path.iterdir()) == before
    assert all(words.refused(name, why) for name, why in refused.items())
    expected = {
        "scanned.pdf": Refused.SCANNED,
        "locked.pdf": Refused.ENCRYPTED,
        "empty.txt": Refused.EMPTY,
        "noise.bin": Refused.BINARY,
        "noise.txt": Refused.ENCODING,
        "image.png": Refused.DAMAGED,
        "image.jpg": Refused.DAMAGED,
        "photo.heic": Refused.HEIF,
        "sound.mp3": Refused.SOUND,
        "laughs.docx": Refused.DAMAGED,
        "folder": Refused.FOLDER,
        "link.txt": Refused.LINK,
        "missing": Refused.MISSING,
    }
    assert {name: refused[name] for name in expected} == expected


def test_document_that_unpacks_to_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "MAX_UNPACKED", 1000)
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("first", "second"):
            file.writestr(name, bytes(600))
    package = packages.Package(path)

    assert len(package.part("first")) == 600
    with pytest.raises(RefusedFileError) as refused:
        package.part("second")
    assert refused.value.why is Refused.TOO_LARGE


@pytest.mark.slow
def test_file_that_takes_too_long_is_ended_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "comments.html"
    path.write_bytes(b"<html>" + b"<!--" * 200_000)
    extractor = Extractor(step_s=0.2)

    assert why(extractor, path) is Refused.TOO_COMPLEX
    assert read(extractor, tmp_path / "b.txt", b"still there") == "still there"

    extractor.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "missing.txt"])
def test_step_leaves_no_timer_that_ends_the_resting_process(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("text")

    FileReading().answer(Frame({"open": str(tmp_path / name)}))

    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.slow
def test_file_is_read_after_the_resting_process_was_killed(tmp_path: Path) -> None:
    extractor = Extractor()
    assert read(extractor, tmp_path / "a.txt", b"first") == "first"
    process = max(psutil.Process().children(), key=psutil.Process.create_time)
    process.kill()
    process.wait()

    assert read(extractor, tmp_path / "b.txt", b"second") == "second"

    extractor.close()


@pytest.mark.slow
def test_reading_ends_if_the_caller_cancels(tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    path.write_bytes(files.pdf_of(*("\n".join(["many words"] * 200) for _ in range(400))))
    extractor = Extractor()

    def stop(_share: float) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        extractor.read(path, stop)

    assert read(extractor, tmp_path / "a.txt", b"first") == "first"
    extractor.close()


@pytest.mark.slow
def test_page_of_empty_cells_is_read_in_linear_time(extractor: Extractor, tmp_path: Path) -> None:
    # A pattern for blanks before a line break reads each run of tabs again from each of its tabs.
    page = f"<html>Start{'<td></td>' * 100_000}End</html>"

    text = read(extractor, tmp_path / "a.html", page.encode())

    assert text.split() == ["Start", "End"]


def test_name_of_an_attached_file_has_no_invisible_characters(
    extractor: Extractor, tmp_path: Path
) -> None:
    path = tmp_path / "invoice\u202efdp\x1b.txt"
    path.write_text("text", encoding="utf-8")

    assert extractor.read(path).attachment.name == "invoicefdp.txt"
