"""Contract of app.words: it has all texts that users read in the window, and no unused texts.

A single word in lower case may also be a key or a name. The test takes it for a text only in the
arguments of a call that shows text (see READ).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.contracts.sources import ROOT, parsed

APP = ROOT / "app"
# Files and folders of app/ that print to the terminal, not to the window.
TERMINAL = ("cli", "selftest.py", "__main__.py")

# Matches a string that users may read: two parts with a space between them, at least one of them a
# word; or a string that begins like a sentence or a title; or a heading in capitals.
WORDS = re.compile(r"[^\W\d_]{2,}\S* +\S|\S +[^\W\d_]{2,}|^[A-Z][a-z]|^[A-Z]{4,}$")
SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|BEGIN|COMMIT|ROLLBACK)\b"
)
KEYS = re.compile(r"((Ctrl|Alt|Shift|Meta)\+)+\S+$")

# Names of functions whose string arguments are not shown to users.
UNREAD = {
    *("debug", "info", "warning", "error", "critical", "exception", "log", "Formatter"),
    *("AssertionError", "RuntimeError", "TypeError", "ValueError"),
    *("compile", "match", "fullmatch", "sub", "QRegularExpression"),
    *("TypeVar", "NewType", "cast", "QKeySequence"),
    *("setObjectName", "setProperty", "setStyle", "setStyleSheet", "setDefaultStyleSheet"),
    "version",
}
# Names of functions whose string arguments are shown to users, even a single word.
READ = {
    *("setText", "setToolTip", "setPlaceholderText", "setWindowTitle", "setInformativeText"),
    *("setAccessibleName", "setAccessibleDescription", "setLabelText", "drawText"),
    *("addAction", "addMenu", "addButton", "QAction", "QLabel", "QPushButton", "IconButton"),
    *("say", "offer", "Problem"),
}
# Strings that look like user-visible texts, but are not. Key: file. Value: names of the functions
# and constants that contain such strings. "*" stands for the whole file.
EXEMPT = {
    "bridge/display.py": {
        # Part of a system error message, by which the app recognises the message.
        "MISSING_LIBRARY",
        "missing_display",  # names of environment variables
    },
    "hub/faults.py": {"_CODES"},  # codes of the Hub
    "server/metrics.py": {"MEDIA_TYPE", "_metric"},  # the format of Prometheus
    "conversation/attachments.py": {"_block", "marked_page"},  # text for the model
    "conversation/text.py": {"_visible", "_is_harmless"},  # categories of Unicode
    "conversation/folding.py": {"fold"},  # a Unicode normalisation
    "conversation/quotes.py": {"_words"},  # a Unicode normalisation
    "exchange/documents.py": {"_HEAD", "_image", "to_html"},  # HTML tags around the texts
    "extraction/packages.py": {"_FALLBACK"},  # the name of an XML element
    "extraction/picture_metadata.py": {"_STRIP"},  # names of formats in Pillow
    "extraction/pictures.py": {"*"},  # names of formats and modes in Pillow
    "extraction/program.py": {"_is_html"},  # HTML
    "paths.py": {"FOLDER_NAME", "_HOME_IN_BUNDLE"},
    "server/application.py": {"make_application"},  # methods of HTTP
    "server/guard.py": {"_ALLOWED_METHODS", "Guard", "_preflight"},  # methods and headers of HTTP
    "server/kept_replies.py": {"*"},  # SQL
    "server/protocol.py": {"STREAM_END", "server_event"},  # the form of events
    "store/backups.py": {"FOLDER"},
    "login_item.py": {"LoginItem", "login_item"},  # keys and folders of macOS
    "store/database.py": {"_UNDECODED"},  # part of an error message of sqlite3
    "store/mending.py": {"*"},  # SQL
    "store/rescue.py": {"*"},  # SQL
    "store/schema.py": {"_PENDING"},  # SQL
    "store/search.py": {"query_terms"},  # a Unicode normalisation
    "store/statements.py": {"*"},  # SQL
    "theme/fonts.py": {"TEXT_FAMILIES", "CODE_FAMILIES"},
    "theme/stylesheet.py": {"*"},
    "theme/window_style.py": {"*"},
    "viewmodels/server_clients.py": {"*"},  # names and files of other programs
    "viewmodels/latex.py": {"_COMMANDS"},  # names of LaTeX commands
    "viewmodels/latex_commands.py": {"_TEMPLATES"},  # LaTeX
    "widgets/key_choices.py": {"_EDITING", "_MODIFIERS", "_SHIFT"},  # names of Qt
    "widgets/line_height.py": {"as_lines"},  # HTML tags around the text
    "widgets/tips.py": {"_NARROW", "_WIDE"},  # HTML tags around a text of app/words
}


def window_files() -> Iterator[Path]:
    for file in sorted(APP.rglob("*.py")):
        if file.relative_to(APP).parts[0] not in (*TERMINAL, "words"):
            yield file


def called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def texts(node: ast.AST, *, is_read: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) for each user-visible text in a syntax node."""
    text = text_of(node)
    if isinstance(node, ast.expr) and is_words(text, is_read=is_read):
        yield node.lineno, text
    is_read = is_read or (isinstance(node, ast.Call) and called(node) in READ)
    for part in parts(node):
        yield from texts(part, is_read=is_read)


def text_of(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(part) or "{}" for part in values)
        case _:
            return ""


def parts(node: ast.AST) -> Iterable[ast.AST]:
    """Return the child nodes that may contain user-visible texts."""
    match node:
        case ast.Expr(value=ast.Constant()):  # a docstring
            return ()
        case ast.Assert(test=part) | ast.Subscript(value=part):
            return (part,)
        case ast.Call(func=function) if called(node) in UNREAD:
            return (function,)
        case ast.JoinedStr(values=values):
            return (part.value for part in values if isinstance(part, ast.FormattedValue))
        case _:
            return ast.iter_child_nodes(node)


def is_words(text: str, *, is_read: bool) -> bool:
    if is_read:
        return any(letter.isalpha() for letter in text)
    return bool(WORDS.search(text)) and not SQL.match(text) and not KEYS.match(text)


def holder(statement: ast.stmt) -> str:
    """Return the name that a statement defines, or an empty string if it defines none."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def found_in(file: Path) -> dict[str, list[str]]:
    """Return the user-visible texts in a file.

    Key: name of a function or constant. Value: the texts in it.
    """
    found: dict[str, list[str]] = {}
    for statement in parsed(file).body:
        for line, text in texts(statement):
            place = f"app/{file.relative_to(APP)}:{line}: {text!r}"
            found.setdefault(holder(statement), []).append(place)
    return found


@pytest.mark.slow
def test_user_visible_texts_are_only_in_app_words() -> None:
    found: list[str] = []
    files = list(window_files())
    for file in files:
        exempt = EXEMPT.get(str(file.relative_to(APP)), set[str]())
        for name, places in found_in(file).items():
            if not exempt & {name, "*"}:
                found.extend(places)

    assert len(files) > 100
    assert not found, f"move these texts to a module of app/words/: {found}"


@pytest.mark.parametrize("name", EXEMPT)
def test_every_exemption_is_still_needed(name: str) -> None:
    found = found_in(APP / name)

    assert found
    assert EXEMPT[name] - {"*"} <= set(found)


@pytest.mark.parametrize(
    "line",
    [
        'button = QPushButton("send", self)',
        'self.setToolTip(f"{name}: choose another model")',
        'TITLE = "New chat"',
        'HEADING = "RECENT"',
        'note = f"{count} ahead" if count else ""',
        "found = total or f\"{first} {'not found' if looks else number}\"",
        'raise DiskError(f"{path} can\'t be written.")',
    ],
)
def test_texts_finds_user_visible_strings(line: str) -> None:
    assert list(texts(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        '"""A docstring."""',
        'log.info("the window is open")',
        'assert ended, "a reply ends once"',
        'rows = database.rows("SELECT name FROM presets")',
        'command = Command(keys="Ctrl+Shift+C")',
        'label.setProperty("tone", "secondary")',
        'raise ValueError(f"no rule for {hint}")',
        'text = f"{title} {text}"',
    ],
)
def test_texts_ignores_other_strings(line: str) -> None:
    assert list(texts(ast.parse(line))) == []


def modules() -> list[Path]:
    return [file for file in sorted((APP / "words").glob("*.py")) if file.stem != "__init__"]


def taken_from_words(tree: ast.Module) -> Iterator[str]:
    """Yield each name of app.words that a module uses, as "module.NAME"."""
    areas = {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "app.words"
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=word) if name in areas:
                yield f"{areas[name]}.{word}"
            case _:
                pass


def test_every_name_in_app_words_is_used() -> None:
    used = {word for file in APP.rglob("*.py") for word in taken_from_words(parsed(file))}
    for module in modules():
        names = [node for node in ast.walk(parsed(module)) if isinstance(node, ast.Name)]
        used |= {f"{module.stem}.{name.id}" for name in names if isinstance(name.ctx, ast.Load)}
    defined = {
        f"{module.stem}.{name}"
        for module in modules()
        for statement in parsed(module).body
        if (name := holder(statement))
    }

    assert len(defined) > 100
    unused = sorted(defined - used)
    assert not unused, f"remove these unused names from app/words/: {unused}"


def test_no_phrase_is_written_twice_in_app_words() -> None:
    names: dict[str, list[str]] = {}
    for module in modules():
        for statement in parsed(module).body:
            text = text_of(getattr(statement, "value", statement))
            if text.count(" ") > 1:
                names.setdefault(text, []).append(f"{module.stem}.{holder(statement)}")

    twice = [places for places in names.values() if len(places) > 1]
    assert len(names) > 100
    assert not twice, f"keep one of these equal texts, and use it in both places: {twice}"


# Matches straight quotes and three dots. User-visible texts must have typographic quotes and
# ellipses instead, except in code between backticks.
TYPEWRITTEN = re.compile(r"""['"]|\.\.\.""")
CODE = re.compile(r"`[^`]*`")


def printed(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) for each string but docstrings. Remove code between backticks."""
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in docstrings:
            yield node.lineno, CODE.sub("", text_of(node))


def typewritten(tree: ast.Module) -> list[str]:
    return [f"{line}: {text}" for line, text in printed(tree) if TYPEWRITTEN.search(text)]


def test_words_have_typographic_quotes_and_ellipses() -> None:
    found = [f"{module.name}:{at}" for module in modules() for at in typewritten(parsed(module))]
    assert not found, f"use typographic quotes and ellipses in these texts: {found}"


@pytest.mark.parametrize(
    "line", ['A = "It can\'t."', "def f(x): return f'Deleted \"{x}\"'", 'A = "Settings..."']
)
def test_typewritten_finds_straight_quotes_and_three_dots(line: str) -> None:
    assert typewritten(ast.parse(line))


@pytest.mark.parametrize("line", ["A = \"Run `say 'a'`, it can’t\"", '"""It\'s a docstring."""'])
def test_typewritten_ignores_code_and_docstrings(line: str) -> None:
    assert typewritten(ast.parse(line)) == []


def test_app_imports_words_only_as_modules() -> None:
    for file in APP.rglob("*.py"):
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ImportFrom | ast.Import):
                imported = getattr(node, "module", None) or node.names[0].name
                assert not imported.startswith("app.words."), (
                    f"{file}: write `from app.words import AREA`, then AREA.NAME"
                )
