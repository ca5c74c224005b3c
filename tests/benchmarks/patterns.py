r"""Growth of the time of every regular expression in the app and the engine on its worst text.

    python -m tests.benchmarks.patterns [--chars 1000000]

WORST has an entry for each expression in the source; tests/contracts/test_patterns.py checks that. The
time for twice the text may be at most 2.5 times as long. An expression that meets only short texts
is run on its longest one.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.store.search import match_pattern
from app.viewmodels.find import compile_query

ROOT = Path(__file__).parents[2]
_FLAGS = {"re.DOTALL": re.DOTALL, "re.MULTILINE": re.MULTILINE, "re.IGNORECASE": re.IGNORECASE}
_USES = ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
_ONCE = ("match", "fullmatch")  # methods that look at one place; the others go through the text
_MAX_GROWTH = 2.5
_MAX_SHORT_MS = 20.0
_RUNS = 5  # the fastest run counts: other programs only make one slower
_NAME = 255  # most characters of a file name
_SETTLED = 0.002  # seconds; shorter times are too noisy for a ratio


@dataclass(frozen=True, slots=True)
class Worst:
    """The slowest known text for an expression: a unit, repeated, between a start and an end."""

    unit: str
    start: str = ""
    end: str = "\0"
    most: int = 0  # most characters that the expression meets; 0: no limit
    build: Callable[[], re.Pattern[str]] | None = None  # for an expression that is put together

    def text(self, chars: int) -> str:
        return self.start + self.unit * (chars // len(self.unit)) + self.end


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression in the source. A computed one is the source of its argument."""

    place: str  # file and line
    source: str
    flags: re.RegexFlag
    use: str  # method that the app calls


def _query(words: str) -> Callable[[], re.Pattern[str]]:
    def build() -> re.Pattern[str]:
        query = compile_query(words)
        assert query is not None
        return query.in_markdown

    return build


WORST: dict[str, Worst] = {
    # Conversations, their titles and their attached files
    "`{3,}": Worst("``a"),
    r"[\w\u00ad\u0300-\u036f]+(?:-(?:\r?\n[ \t]{0,8})?[\w\u00ad\u0300-\u036f]+)*": Worst(
        "a-\n        "
    ),
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]": Worst("\u3030"),
    r"^\[Page (\d+)\]$": Worst("[Page 1"),
    r"^ *pixel(?:Width|Height): (\d{1,6})$": Worst("    pixelWidth: 1234567\n"),
    r"(?<!\s)\s*[-\u2013\u2014]\s*": Worst(" \n"),
    r"[,;\s]+": Worst(", "),
    r"(?<=\d) (?=(?:ms|s|min|tokens?|tok/s|[KMG]B)\b)": Worst("1 token", most=2000),
    r"(\d{1,6})(?:-(\d{1,6}))?": Worst("1-"),
    "([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])": Worst(
        "\u4e00"
    ),
    r"^\s*(?:(?:#{1,6}|[>*+-]|\d{1,3}[.)])\s+|>)*": Worst("# ", most=400),
    r"!?\[([^\]]*)\]\([^)]*\)": Worst("[", most=400),
    r"\*\*(\S|\S.*?\S)\*\*": Worst("**a ", most=400),
    r"(?<!\w)\*(\S|\S.*?\S)\*(?!\w)": Worst(" *a", most=400),
    r"<(think|thinking|reasoning)>.*?(</\1>|\Z)|</(think|thinking|reasoning)>": Worst("<think>"),
    r"^\W*(title|titel|titre|título|titolo|标题|タイトル)\W*[:\uff1a]\s*": Worst(
        "title ", most=2000
    ),
    r"<\|?[\w/]+\|?>|[\x00-\x1f\x7f\ufffd]": Worst("<|a", end=""),
    # Compared branches
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
    r"|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|[^\w\s]": Worst("\u4e00"),
    # Export and import
    "`{3,}|~{3,}": Worst("`"),
    r'[\\/:*?"<>|\x00-\x1f\x7f]+': Worst("> "),
    '<details type="reasoning"[^<>]*>': Worst('<details type="reasoning"'),
    "<summary>": Worst("<summary"),
    "^> ?": Worst(">\n"),
    # Attached files
    r"\n{3,}": Worst("\n\na"),
    " {2,}": Worst("  a"),
    r"\s+": Worst(" "),
    r"(?<!\n)\n+\t": Worst("\n"),
    r"\w": Worst("-"),
    "[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]": Worst("\x01"),
    "[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff]": Worst("\x01"),
    # The Hub
    r"[\x21-\x7e]{1,500}": Worst("a"),
    r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?[BM](?:-A\d+(?:\.\d+)?B)?)(?![A-Za-z0-9])": Worst("1B-A1-"),
    r"(?<![A-Za-z0-9])(\d{1,2})[-_]?bit|[QI]Q?(\d)_|mxfp(\d)": Worst("1-"),
    r"(?:https?://[^/\s]+/)?([\w.-]+/[\w.-]+?)(?:/tree/[^\s]*)?/?": Worst("a", start="a/"),
    r"-\d{5}-of-(?=\d{5}\.gguf$)": Worst("-00001-of-"),
    r"(?<![^\W_])(i?q\d\w*)|_": Worst("_q", most=_NAME),
    r"(?<![^ -])(\d{1,2})[ -]?bits?(?![^ -])": Worst("-4-bi", most=_NAME),
    r"(?<=\db)-(?=a\d)": Worst("1b-", most=_NAME),
    r"-?v?[\d.]*(?:-.*)?": Worst("1", end="x"),
    "[0-9a-f]{40}|[0-9a-f]{64}": Worst("a"),
    "[0-9a-f]{64}": Worst("a"),
    r"([0-9a-f]{64})(?:\.small)?\.(?:png|jpg|webp)(?:\.part)?": Worst("a", most=_NAME),
    r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?": Worst("a", start="con."),
    "[0-9a-f]{40}": Worst("a"),
    "(?:[a-z0-9_][a-z0-9_.-]{0,95}/)?[a-z0-9_][a-z0-9_.-]{0,95}": Worst("a"),
    # Hosts files
    "[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}": Worst("a"),
    "[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}": Worst("a"),
    "[A-Za-z0-9_.-]{1,32}": Worst("a"),
    "MLX_[A-Z0-9_]{1,64}=[A-Za-z0-9_.,:;/@%+=~ -]{0,1024}": Worst("a", start="MLX_A="),
    # Files of the app
    r"conversations-\d{4}-\d\d-\d\d\.db": Worst("a", most=_NAME),
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \S+ [\w.]+: ": Worst(
        "a", start="2026-01-01 00:00:00,000 A a "
    ),
    r'  File "(?:[^"]*/)?([^"/]*)", line (\d+),? in (\S+)': Worst("a/", start='  File "'),
    r'  File "(?:[^"]*/)?([^"/]*)", line (\d+) in (\S+)': Worst("a/", start='  File "'),
    r"([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning))(?::|$)": Worst("Exit", end="!"),
    r"(Fatal Python error|Thread|Current thread)\b[\w :]*": Worst(" ", start="Thread"),
    r"“[^”]*”|\u2018[^\u2019]*\u2019|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`": Worst(
        '"\\', most=1000
    ),
    r"(?<!\S)\S*/.*": Worst("a"),
    r"\b\w+(?:Error|Exception)\(|\b\w+(?:Error|Exception): ": Worst("Error"),
    # Search
    r'"([^"]*)"?|([^\s"]+)': Worst('"'),
    r"\w+": Worst("a-"),
    "'|'.join((f'(?<![a-z0-9])(?:{pattern})' for pattern in patterns if pattern))": Worst(
        "a ", build=lambda: match_pattern(["a a a b", "a c"])
    ),
    "_WHITE.join(escaped)": Worst("a ", build=lambda: re.compile(r"a\s+a\s+b")),
    "_with_markup(words)": Worst("- ", build=_query("- - - b")),
    "f'({re.escape(first)})' + ''.join(gaps)": Worst(
        "a", most=_NAME, build=lambda: re.compile("(a)[^b]*(b)[^c]*(c)", re.DOTALL)
    ),
    r"\*\*|`+": Worst("`*"),
    r"(\d+)": Worst("1a"),
    # Answers
    "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]": Worst(
        "a"
    ),
    "[0-9A-Za-z$]": Worst("a"),
    r"(?!(?:st|nd|rd|th|s)(?![0-9A-Za-z]))[0-9A-Za-z$]": Worst("st"),
    r"\\begin\{((?:equation|align|alignat|gather|multline|flalign)\*?)\}": Worst(r"\begin{align"),
    r"\s*\S.*[\s,;]": Worst("a", start=" "),
    r"[ \t\n\r\f]+": Worst(" a"),
    r"\[([ xX])\](?:\s+|$)": Worst(" ", start="[x]"),
    "\n": Worst("\n"),
    r"(?:\d[.)]?|[-+*=_#>`~|: \t])*$": Worst("1"),
    r"(`{3,}+|~{3,}+)[^\n]*+\n": Worst("`"),
    "f' {{0,3}}{re.escape(marker)}{re.escape(marker[0])}*[ \\\\t]*'": Worst(
        "`", build=lambda: re.compile(" {0,3}````*[ \\t]*")
    ),
    r"\\(?:(?:re)?new(?:command|environment)|providecommand|[gex]?def|let|Declare)": Worst(
        r"\renew"
    ),
    r"\\\\|\\[{}]|(\\begin\b|\\left\b)|(\\end\b|\\right\b)|(\{)|(\})": Worst(r"\begi"),
    # Formulas have at most 2,000 characters.
    r"\\(['`^~\"=.])\s?(?:\{(\\?[a-zA-Z])\}|(\\[ij]\b|[a-zA-Z]))": Worst(r"\'{a", most=2_000),
    r"\\([uvHr])(?:\s?\{(\\?[a-zA-Z])\}|\s([a-zA-Z])|(\\[ij]\b))": Worst(r"\u{a", most=2_000),
    r"\\([a-zA-Z]+)": Worst("\\", most=2_000),
    r"\\(begin|end)\s?\{([a-zA-Z]{1,12})(\*?)\}(?:\s?\[[a-z]\])?(?:\s?\{\d{1,2}\})?": Worst(
        r"\begin{array}[t]{1", most=2_000
    ),
    r"\\tag\*": Worst(r"\tag", most=2_000),
    r"\\operatorname\*": Worst(r"\operatorname", most=2_000),
    r"\\not\s?=": Worst(r"\not ", most=2_000),
    r"\\(?:[a-zA-Z]+|.)|.": Worst("\\", most=2_000),
    r"\\(?:([a-zA-Z]+)|.)": Worst("\\", most=2_000),
    r"\\[,;: ]|\s|~": Worst("\\", most=2_000),
    "[A-Za-z\u00a0]+": Worst("a", most=2_000),
    "#?[0-9A-Za-z]{1,30}": Worst("a", most=2_000),
    r"\\begin\{array\}": Worst(r"\begin{arra", most=2_000),
    r"\s*(?:([lcr])|([|:])|\*\{(\d{1,2})\}|[@!<>]|[pmbX])": Worst(" ", most=2_000),
    r"\\(?:(hline|toprule|midrule|bottomrule)|(hdashline)|cline\s?\{(\d{1,2})-(\d{1,2})\})(?![a-zA-Z])": Worst(
        r"\cline{1-1", most=2_000
    ),
    r"(?P<arrow><=>>|<<=>|<-->|<=>|<->|->|<-)|(?P<command>\\(?:[a-zA-Z]+|.))"
    r"|(?P<math>\$(?:\\.|[^$\\])*\$)|(?P<letters>[a-zA-Z]+)|(?P<number>\d+(?:[./]\d+)?)"
    r"|(?P<script>[_^])|(?P<sign>[+-])|(?P<space>\s+)|(?P<other>.)": Worst("$\\", most=2_000),
    r"\d*[+-]+|\d+|[a-zA-Z]|[^\s{}\\$]": Worst("1", most=2_000),
    r"\d+": Worst("1", most=2_000),
    r"\\begin\s*\{([^{}]*)\}": Worst(r"\begin ", most=2_000),
    r"\\\\\s?\[-?[\d.]{1,9}\s?[a-z]{2}\]": Worst(r"\\[1.5em", most=2_000),
    r"\\hspace\*": Worst(r"\hspace", most=2_000),
    r"\\[bB]igg?[lrm]?\s?\.": Worst(r"\bigl", most=2_000),
    r"('{1,9})\s?\^\s?(\{|\\[a-zA-Z]+|[^\\\s])": Worst("'", most=2_000),
    r"\\(?:[a-zA-Z]+|[{}|])": Worst("\\", most=2_000),
    r"\\((?:Ka|La)?TeX)\b": Worst(r"\LaTe", most=2_000),
    "\\\\([_%$&#{} \\u00a0])": Worst("\\", most=2_000),
    r".*(?:[.!?…:]\s|[。！？]|\n)": Worst("a."),  # noqa: RUF001 - CJK stops
    r"^ {0,3}(?:```|~~~|[-*+] |\d{1,9}[.)] )": Worst("   1\n"),
    # Model folders
    r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf": Worst("-00001-of-", most=_NAME),
    "sha256[:-]([0-9a-f]{64})": Worst("sha256:"),
    r"(?P<start>.*-)(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors": Worst(
        "-00001-of-", most=_NAME
    ),
    r"(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})(?P<suffix>\.gguf)": Worst(
        "-00001-of-", most=_NAME
    ),
    r"[-_.](bf16|fp16|f16|fp32|f32|16bit)$": Worst("-bf16"),
    r"(?:\w+\.){0,3}?mtp\.(?P<name>.+)": Worst("a"),
    r"(?P<start>.*\.mlp)\.experts\.(?P<number>\d{1,5})\.(?P<end>.+)": Worst(".mlp.experts.1"),
    r"(?P<start>.*\.mlp)\.(?:experts|switch_mlp)\.gate_up_proj(?P<end>(?:\.\w+)?)": Worst(
        ".mlp.experts.gate_up_proj"
    ),
    r"(?P<start>.*\.mlp)\.experts\.down_proj(?P<end>(?:\.\w+)?)": Worst(".mlp.experts.down_proj"),
    r"(?P<stem>.+?)-mtp(?:-.*)?": Worst("-mtp", end="\n", most=_NAME),
    # Prompts
    r"\s*\S{1,24}\Z": Worst(" ", most=64),
    "([\U000f0000-\U0010fffd])[rc][0-9]+\\1": Worst("\U000f0000r1"),
    "[\U000f0000-\U0010fffd]": Worst("\U000f0000"),
    "f'{a}([0-9]*){a}([^{a}{b}]*){b}'": Worst(
        "aa1", build=lambda: re.compile("a([0-9]*)a([^ab]*)b")
    ),
    # Markers are checked to be few by the tokenizer's limits; a branch for each is tried.
    "'|'.join(map(re.escape, longest_first)) or '(?!)'": Worst(
        "<|", build=lambda: re.compile(r"<\|im_end\|>|<\|im_start\|>")
    ),
    # Text of installed packages, which is not foreign
    r"^(class Model\b|Model\s*=|from\s.+\simport\s.*\bModel\b(?!\s+as))": Worst("a\n"),
    r"(\"\w+\"|\d+) -> (\"\w+\"|\d+)": Worst("1 -> "),
}


def expressions() -> Iterator[Expression]:
    """Yield the regular expressions in the source of the app and the engine."""
    for folder in ("app", "engine"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if "import re\n" not in text:
                continue
            tree = ast.parse(text)
            names = {
                id(node.value): ast.unparse(
                    node.targets[0] if isinstance(node, ast.Assign) else node.target
                )
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and _is_expression(node.func):
                    place = f"{file.relative_to(ROOT)}:{node.lineno}"
                    yield _expression(place, node, text, names.get(id(node), ""))


def _is_expression(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "re"
        and called.attr in _USES
    )


def _expression(place: str, call: ast.Call, text: str, name: str) -> Expression:
    first = call.args[0]
    value = first.value if isinstance(first, ast.Constant) else None
    source = value if isinstance(value, str) else ast.unparse(first)
    flags = re.RegexFlag(0)
    for flag_name, flag in _FLAGS.items():
        flags |= flag if flag_name in ast.unparse(call) else 0
    uses = re.findall(rf"\b{name}\.(match|fullmatch)\(", text) if name else []
    use = uses[0] if uses else ast.unparse(call.func).removeprefix("re.")
    return Expression(place, source, flags, use)


def _seconds(pattern: re.Pattern[str], use: str, text: str) -> float:
    started = time.process_time()
    if use in _ONCE:
        getattr(pattern, use)(text)
    else:
        deque(pattern.finditer(text), maxlen=0)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chars", type=int, default=1_000_000)
    args = parser.parse_args()
    failed = 0
    for found in expressions():
        worst = WORST[found.source]
        pattern = worst.build() if worst.build else re.compile(found.source, found.flags)
        chars = worst.most or 2 * args.chars
        texts = worst.text(chars // 2), worst.text(chars)
        runs = [[_seconds(pattern, found.use, text) for text in texts] for _ in range(_RUNS)]
        half, whole = map(min, zip(*runs, strict=True))
        growth = whole / half if whole > _SETTLED else 1.0
        is_bad = 1e3 * whole > _MAX_SHORT_MS if worst.most else growth > _MAX_GROWTH
        failed += is_bad
        verdict = "TOO SLOW" if is_bad else ""
        print(
            f"{found.place:48} {chars:8} {1e3 * whole:8.1f} ms {growth:5.1f}x {verdict}", flush=True
        )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
