"""Measures the extraction of text from files, against pdftotext and pandoc, and on hostile files.

    python -m tests.benchmarks.extraction words [DOCUMENT...]
    python -m tests.benchmarks.extraction hostile

`words` makes PDF documents with Qt, and Word, EPUB and HTML documents with pandoc, from Markdown
files: by default those of this project. PDF documents may be given too. It prints the share of the
words of pdftotext or `pandoc -t plain` that the extraction finds, and the seconds it took. The
programs must be installed: apt-get install poppler-utils pandoc.

`hostile` reads the files of tests/fakes/hostile_files.py, and prints the result, the slowest file
and the number of files that were left behind.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from PySide6.QtGui import QGuiApplication, QPageSize, QPdfWriter, QTextDocument

from app.extraction.extractor import Extractor
from app.extraction.refusal import RefusedFileError
from tests.fakes.hostile_files import write_hostile_files

ROOT = Path(__file__).parents[2]
_WORD = re.compile(r"\w+")
_LIGATURES = str.maketrans({"ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "ﬃ": "ffi", "ﬄ": "ffl", "\xad": ""})
FORMATS = ("docx", "epub", "html")


def run_program(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_pdf(markdown: Path, out: Path) -> None:
    """Print a document as Qt prints it: with subsets of fonts, in pages of A5."""
    document = QTextDocument()
    document.setMarkdown(markdown.read_text("utf-8"))
    writer = QPdfWriter(str(out))
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A5))
    document.print_(writer)


def documents(sources: Iterable[Path], folder: Path) -> Iterator[Path]:
    """Yield PDF documents as they are, and each Markdown file in four formats."""
    for number, source in enumerate(sources):
        if source.suffix == ".pdf":
            yield source
            continue
        pdf = folder / f"{number}.pdf"
        write_pdf(source, pdf)
        yield pdf
        for name in FORMATS:
            out = folder / f"{number}.{name}"
            run_program("pandoc", "-s", "-f", "gfm", str(source), "-o", str(out))
            yield out


def reference(path: Path) -> str:
    if path.suffix == ".pdf":
        return run_program("pdftotext", "-enc", "UTF-8", str(path), "-")
    return run_program("pandoc", "-t", "plain", str(path))


def words_of(text: str) -> Counter[str]:
    # A word that is hyphenated at the end of a line counts as two words, in both texts.
    return Counter(_WORD.findall(text.translate(_LIGATURES).lower()))


def measure_words(sources: list[Path]) -> None:
    application = QGuiApplication(["extraction"])
    extractor = Extractor()
    shares: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in documents(sources, Path(folder)):
            expected = words_of(reference(path))
            started = time.perf_counter()
            found = words_of(extractor.read(path).attachment.text)
            kind = path.suffix[1:]
            seconds[kind] = seconds.get(kind, 0.0) + time.perf_counter() - started
            share = (expected & found).total() / max(1, expected.total())
            shares.setdefault(kind, []).append(share)
            if share < 0.98:
                print(f"{path.name}: {share:.4f} {list((expected - found).items())[:9]}")
    extractor.close()
    del application
    every = [share for kind in shares.values() for share in kind]
    result = {
        kind: {
            "files": len(own),
            "worst": round(min(own), 4),
            "mean": round(sum(own) / len(own), 4),
            "seconds": round(seconds[kind], 2),
        }
        for kind, own in shares.items()
    }
    print(json.dumps({"files": len(every), "worst": round(min(every), 4), **result}))


def measure_hostile() -> None:
    extractor = Extractor()
    results: Counter[str] = Counter()
    slowest = ("", 0.0)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_hostile_files(Path(folder))
        before = sorted(Path(folder).iterdir())
        for path in paths:
            started = time.perf_counter()
            try:
                extractor.read(path)
                results["text"] += 1
            except RefusedFileError as refusal:
                results[refusal.why.value] += 1
            slowest = max(slowest, (path.name, time.perf_counter() - started), key=lambda x: x[1])
        left = len(set(Path(folder).iterdir()) - set(before))
    extractor.close()
    print(json.dumps({"files": len(paths), "slowest": slowest, "left_behind": left, **results}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("words", "hostile"))
    parser.add_argument("documents", nargs="*", type=Path)
    args = parser.parse_args()
    if args.what == "hostile":
        measure_hostile()
    else:
        measure_words(args.documents or sorted(ROOT.glob("*.md")))


if __name__ == "__main__":
    main()
