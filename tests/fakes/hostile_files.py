"""Files that are damaged, hostile or of a kind that is not read, for tests of the extraction."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
)

CONTENT_TYPES = "<?xml version='1.0'?><Types/>"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf_of(*pages: str) -> bytes:
    """Return a PDF document with a line of text on each page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(width=595, height=842)
        lines = "".join(f"({line}) Tj T* " for line in text.split("\n"))
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 14 TL 50 780 Td {lines}ET".encode("latin-1"))
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        page[NameObject("/Contents")] = stream if text else ArrayObject()
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


def encrypted_pdf(password: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of("Secret")))
    writer.encrypt(password, algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


def pdf_bomb(megabytes: int) -> bytes:
    """Return a small PDF document whose page unpacks to many megabytes."""
    packed = zlib.compress(b"q Q " * (megabytes << 18), 9)
    body = pdf_of("x")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    ]
    return body[:9] + _pdf_objects(objects)


def pdf_with_objects(number: int) -> bytes:
    """Return a PDF document with many empty objects and pages that point to each other."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 999999999 >>",
    ]
    objects += [b"<< /Next %d 0 R >>" % (n + 4) for n in range(number)]
    return b"%PDF-1.4\n" + _pdf_objects(objects)


def _pdf_objects(objects: list[bytes]) -> bytes:
    parts: list[bytes] = []
    offsets: list[int] = []
    position = 9
    for number, content in enumerate(objects, start=1):
        offsets.append(position)
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, content))
        position += len(parts[-1])
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer\n<< /Root 1 0 R /Size %d >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        position,
    )
    return b"".join((*parts, head, table, tail))


def package(parts: dict[str, bytes | str], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return data.getvalue()


def docx_of(body: str, *, head: str = "") -> bytes:
    xml = f'{head}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    return package({"[Content_Types].xml": CONTENT_TYPES, "word/document.xml": xml})


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx_bomb(megabytes: int) -> bytes:
    return docx_of(paragraph(" " * (megabytes << 20)))


def laughing_docx() -> bytes:
    """Return a Word document whose entities expand to gigabytes."""
    entities = "".join(
        f'<!ENTITY e{n} "{("&e" + str(n - 1) + ";") * 10 if n else "lol"}">' for n in range(10)
    )
    return docx_of(paragraph("&e9;"), head=f"<!DOCTYPE d [{entities}]>")


def hostile_files(each: int = 28) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of some 200 files. The same files in every run.

    each: number of cut files and of changed files of each kind.
    """
    chance = random.Random(5)
    whole = {
        "pdf": pdf_of("One two three", "Four five six"),
        "docx": docx_of(paragraph("Some words here")),
        "epub": epub_of("<html><body><p>A chapter of words</p></body></html>"),
    }
    yield "empty.txt", b""
    yield "blank.txt", b" \n\t\n"
    yield "zeros.bin", bytes(100_000)
    yield "noise.bin", chance.randbytes(100_000)
    yield "noise.txt", bytes(chance.randrange(128, 256) for _ in range(4000))
    yield "image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    yield "image.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF"
    yield "sound.mp3", b"ID3\x04\0\0\0"
    yield "film.mp4", b"\0\0\0\x20ftypisom\0\0\0\0"
    yield "photo.heic", b"\0\0\0\x20ftypheic\0\0\0\0"
    yield "old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)
    yield "text.rtf", b"{\\rtf1\\ansi Hello}"
    yield "packed.gz", b"\x1f\x8b\x08\0" + bytes(40)
    yield "other.zip", package({"a.txt": "hello"})
    yield "sheet.xlsx", package({"xl/workbook.xml": "<a/>"})
    yield "nested.zip", package({f"{n}.zip": package({"x": "y"}) for n in range(50)})
    yield "scanned.pdf", pdf_of("", "", "")
    yield "locked.pdf", encrypted_pdf("secret")
    yield "only-header.pdf", b"%PDF-1.7\n"
    yield "laughs.docx", laughing_docx()
    yield "no-end.docx", docx_of("<w:p><w:r><w:t>cut")
    yield "no-root.epub", package({"META-INF/container.xml": "<container/>"})
    yield "open.html", b"<html><body><a " + b"x='" * 200_000
    yield "brackets.html", b"<html>" + b"<![" * 100_000
    for kind, data in whole.items():
        for number in range(each):
            yield f"cut-{number}.{kind}", data[: 20 + number * (len(data) - 30) // each]
        for number in range(each):
            changed = bytearray(data)
            for _ in range(1 + number):
                changed[chance.randrange(8, len(changed))] = chance.randrange(256)
            yield f"changed-{number}.{kind}", bytes(changed)
    yield "lies.docx", _lying_size(whole["docx"])


def slow_files() -> Iterator[tuple[str, bytes]]:
    """Yield files that take seconds to make and to refuse."""
    yield "bomb.pdf", pdf_bomb(600)
    yield "objects.pdf", pdf_with_objects(200_000)
    yield "bomb.docx", docx_bomb(700)
    yield "parts.docx", package({f"word/{n}.xml": "" for n in range(30_000)})
    yield "deep.docx", docx_of("<w:p>" * 100_000 + "</w:p>" * 100_000)
    yield "deep.html", b"<html><body>" + b"<div>" * 200_000
    yield "comments.html", b"<html>" + b"<!--" * 200_000


def epub_of(*chapters: str) -> bytes:
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(len(chapters)))
    refs = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    return package(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles xmlns="u"><rootfile full-path="o/p.opf"/>'
            "</rootfiles></container>",
            "o/p.opf": f'<package xmlns="u"><manifest>{items}</manifest><spine>{refs}</spine></package>',
            **{f"o/c{n}.xhtml": chapter for n, chapter in enumerate(chapters)},
        }
    )


def _lying_size(data: bytes) -> bytes:
    """Return a ZIP file whose directory states a tiny size for each part."""
    at = data.rfind(b"PK\x01\x02")
    return data[: at + 24] + struct.pack("<I", 1) + data[at + 28 :]


def write_hostile_files(folder: Path, *, each: int = 28, slow: bool = True) -> list[Path]:
    """Write the files, and return their paths and those of things that are not files."""
    paths: list[Path] = []
    for name, data in chain(hostile_files(each), slow_files() if slow else ()):
        paths.append(folder / name)
        paths[-1].write_bytes(data)
    (folder / "folder").mkdir()
    (folder / "link.txt").symlink_to(folder / "blank.txt")
    (folder / "loop").symlink_to(folder / "loop")
    return [*paths, folder / "folder", folder / "link.txt", folder / "loop", folder / "missing"]
