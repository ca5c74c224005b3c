"""`rejoinder import`, `rejoinder export`, `rejoinder search`: the conversations without a window.

The commands lock the data folder. While a window is open on it, they fail with one sentence.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from app.cli.client import ProblemError
from app.cli.terminal import for_terminal
from app.conversation.filed import FiledConversation
from app.conversation.tree import ConversationSummary
from app.exchange.exporting import export
from app.exchange.found import Unreadable
from app.exchange.isolated import IsolatedImport
from app.paths import Paths
from app.store.conversations import ConversationStore
from app.store.errors import MessagesTakenError
from app.store.lock import InstanceLock
from app.store.merging import Merged, merge
from app.store.pictures import PictureFiles
from app.store.place import DataPlace
from app.store.search import ConversationHits
from app.words import exchange as words
from engine.problem import Problem

_PROGRESS_S = 0.5  # seconds between two lines of progress


def add_import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE_OR_DIR",
        help="JSON or ZIP of Rejoinder, ChatGPT, Claude, LM Studio, Open WebUI or Jan",
    )


def add_export_arguments(parser: ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--all", action="store_true", help="export every chat")
    chosen.add_argument(
        "--chat", action="append", metavar="NAME", help="its title; may be given several times"
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=f"ends in {words.ENDINGS}")


def add_search_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="WORD", help="a word, its start, or a phrase")


def run_import(args: Namespace, paths: Paths) -> int:
    """Import conversations. Return 1 if something could not be read."""
    with _store(paths) as (store, pictures):
        counts = dict.fromkeys(Merged, 0)
        unreadable: list[Unreadable] = []
        work = IsolatedImport(args.files, pictures, now=time.time())
        with _progress(work) as show:
            for one in work.found():
                if isinstance(one, Unreadable):
                    unreadable.append(one)
                    continue
                try:
                    counts[merge(store, one)] += 1
                except MessagesTakenError:
                    title = one.conversation.title
                    unreadable.append(Unreadable(name=title, reason=words.TAKEN))
                show()
    added, grown, present = counts.values()
    print(words.imported(added, grown, present))
    if unreadable:
        print(words.unreadable(len(unreadable)), file=sys.stderr)
        for one in unreadable:
            print(f"  {for_terminal(one.name)}: {one.reason}", file=sys.stderr)
    return 1 if unreadable else 0


def run_export(args: Namespace, paths: Paths) -> int:
    """Write conversations to a file."""
    with _store(paths) as (store, pictures):
        summaries = store.summaries()
        chosen = summaries if args.all else [_called(summaries, name) for name in args.chat]
        number = export(args.file, _loaded(store, chosen), pictures)
    print(words.exported(number, for_terminal(str(args.file))))
    return 0


def run_search(args: Namespace, paths: Paths) -> int:
    """Print the newest messages that contain some words. Return 1 if there are none."""
    # A word with a space was quoted on the command line: it is a phrase.
    query = " ".join(f'"{word}"' if " " in word else word for word in args.words)
    with _store(paths) as (store, _):
        while store.search.index_slice():
            pass
        groups = store.search.find(query)
    for group in groups:
        _print_hits(group, mark=sys.stdout.isatty())
    if not groups:
        print(words.NOTHING_FOUND, file=sys.stderr)
    return 0 if groups else 1


@contextmanager
def _store(paths: Paths) -> Generator[tuple[ConversationStore, PictureFiles]]:
    place = DataPlace(paths.data_dir)
    with InstanceLock(paths.data_dir), ExitStack() as stack:
        stack.callback(place.release)
        opened = place.open(now=time.time())
        with closing(opened.store) as store:
            if opened.problem is not None:
                print(opened.problem, file=sys.stderr)
            yield store, place.pictures


def _loaded(
    store: ConversationStore, summaries: Sequence[ConversationSummary]
) -> Iterator[FiledConversation]:
    for summary in summaries:
        yield store.load_filed(summary.conversation_id)


def _called(summaries: Sequence[ConversationSummary], name: str) -> ConversationSummary:
    found = [one for one in summaries if one.title.casefold() == name.casefold()]
    if len(found) == 1:
        return found[0]
    cause = words.several_chats(name, len(found)) if found else words.no_such_chat(name)
    raise ProblemError(Problem(title=cause, cause="", advice=""))


def _print_hits(group: ConversationHits, *, mark: bool) -> None:
    print(for_terminal(group.title))
    for hit in group.hits:
        found = hit.excerpt
        before, match, after = (
            for_terminal(found.text[: found.start]),
            for_terminal(found.text[found.start : found.end]),
            for_terminal(found.text[found.end :]),
        )
        name = for_terminal(f"{hit.file}: " if hit.file else "")
        day = time.strftime("%Y-%m-%d", time.localtime(hit.created_at))
        marked = f"\x1b[1m{match}\x1b[0m" if mark else match
        print(f"  {day}  {name}{before}{marked}{after}")


@contextmanager
def _progress(work: IsolatedImport) -> Generator[Callable[[], None]]:
    """Show the share of the files that was read, if standard error is a terminal."""
    is_shown = sys.stderr.isatty()
    last = 0.0

    def show() -> None:
        nonlocal last
        now = time.monotonic()
        if is_shown and now - last >= _PROGRESS_S:
            last = now
            print(f"\r{100 * work.share:.0f}%\x1b[K", end="", file=sys.stderr, flush=True)

    yield show
    if is_shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
