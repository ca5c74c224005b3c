"""Time from the start of the process until a model is ready, and until the first word.

    python -m tests.benchmarks.start --model DIR [--rounds 3] [--tokens 4000] [--cold] [--app PATH]

Each run is a new process of the window. A message is sent as soon as the window is shown. Prints one
JSON line per kind of run with the medians of the seconds from the start of the process:

    first    on a new data folder: nothing is known about the model
    later    on the same data folder
    restored as `later`, in a chat of about --tokens tokens, which comes from disk
    mlx_lm   mlx_lm in a process of its own, with the message alone

On a CPU, mlx_lm computes in float32 too. With --app, the window is that of an app bundle: PATH is
Rejoinder.app/Contents/MacOS/Rejoinder, or that of a twin (packaging/README.md). With --cold, the
files of the model and of the cached state are not in memory when a process starts (Linux). A last line has the ratios: ready / read
(weights read) for `first` and `later`, and first word of `restored` / first word of `mlx_lm`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MESSAGE = "Name a colour."
CHILD = """
import json, os, sys, time
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import app.main
from app.controllers.core import Core
from app.conversation.tree import Setup
from app.launch import launch
from app.options import Options
from engine.events import LoadStage, ModelLoaded, ModelLoading, RequestFinished, TextDelta
from engine.hosts.switched_engine import SwitchedEngine

began, data, model, message, continues = sys.argv[1:]
seconds = {}

def note(name):
    seconds.setdefault(name, round(time.time() - float(began), 3))

init, start = SwitchedEngine.__init__, Core.start

def noting(self, config, on_event, *args, **options):
    def noted(event):
        if isinstance(event, ModelLoading) and event.stage is LoadStage.LOADING:
            note("imported")
        if isinstance(event, ModelLoading) and 0 < event.loaded_bytes == event.total_bytes:
            note("read")
        if isinstance(event, ModelLoaded):
            note("ready")
        if isinstance(event, TextDelta):
            note("word")
        if isinstance(event, RequestFinished):
            note("word")  # an answer may be empty
            for name in ("render", "restore", "prefill"):
                seconds[name] = round(getattr(event.usage, name + "_ms") / 1e3, 3)
        on_event(event)
    init(self, config, noted, *args, **options)

def begin(core):
    note("shown")
    start(core)
    if not continues:
        core.library.new_chat()
        send(core, core.library.current)
        return
    chat = core.library.listed.unarchived[0].conversation_id
    core.library.select(chat)
    core.desk.open(chat, lambda conversation: send(core, chat), sys.exit)

def send(core, chat):
    global timer
    core.chat.set_setup(chat, Setup(max_tokens=4))
    core.chat.send(chat, message)
    timer = QTimer()
    timer.timeout.connect(lambda: end(core))
    timer.start(20)

def end(core):
    if "word" in seconds and not core.turns.live:
        timer.stop()
        print(json.dumps(seconds), flush=True)
        QApplication.quit()

SwitchedEngine.__init__, Core.start = noting, begin
app.main.ENGINE_S = 60.0  # write the whole state for the next start, also on a busy machine
timer = None
# End as the app does. An engine thread that is in a long pass would abort a usual exit.
os._exit(launch(Path(data), Options(model=Path(model))))
"""
PEER = """
import sys, time
from engine.config import EngineConfig
from engine.engine import prepare_libraries
prepare_libraries(EngineConfig())
import mlx.core as mx
from mlx_lm import load, stream_generate
from engine.models.float32 import as_float32
began, model, message = sys.argv[1:]
network, tokenizer = load(model, lazy=True)
if not mx.metal.is_available():
    mx.set_default_device(mx.Device(mx.cpu))
    network = as_float32(network)
mx.eval(network.parameters())
prompt = tokenizer.apply_chat_template(
    [{"role": "user", "content": message}], add_generation_prompt=True
)
for _ in stream_generate(network, tokenizer, prompt, max_tokens=2):
    print(round(time.time() - float(began), 3))
    break
"""


def run(python: str, code: str, *arguments: str) -> str:
    """Run code in a process of its own. Return the last line that it printed."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    environment.setdefault("QT_QPA_PLATFORM", "offscreen")
    result = subprocess.run(
        [python, "-c", code, str(time.time()), *arguments],
        cwd=ROOT if python == sys.executable else "/",  # a bundle has its own app and engine
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return result.stdout.splitlines()[-1]


def drop_from_memory(folder: str) -> None:
    """Remove the files of weights or records from the memory in which the system keeps files."""
    for path in Path(folder).rglob("*.safetensors"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def one_round(
    python: str, model: str, num_tokens: int, *, is_cold: bool
) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as data:

        def timed(python: str, code: str, *arguments: str) -> str:
            if is_cold:
                drop_from_memory(model)
                drop_from_memory(data)
            return run(python, code, *arguments)

        found = {
            name: json.loads(timed(python, CHILD, data, model, message, continues))
            for name, message, continues in (
                ("first", MESSAGE, ""),
                ("later", MESSAGE, ""),
                ("chat", "one two three four " * (num_tokens // 4) + MESSAGE, ""),
                ("restored", MESSAGE, "yes"),
            )
        }
        del found["chat"]
        word = float(timed(sys.executable, PEER, model, MESSAGE))
    return {**found, "mlx_lm": {"word": word}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--app", default=sys.executable)
    args = parser.parse_args()
    rounds = [
        one_round(args.app, args.model, args.tokens, is_cold=args.cold) for _ in range(args.rounds)
    ]
    medians = {
        name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}
        for name in rounds[0]
    }
    for name, seconds in medians.items():
        sys.stdout.write(json.dumps({"run": name, **seconds}) + "\n")
    ratios = {
        "first": medians["first"]["ready"] / medians["first"]["read"],
        "later": medians["later"]["ready"] / medians["later"]["read"],
        "restored": medians["restored"]["word"] / medians["mlx_lm"]["word"],
    }
    rounded = {name: round(ratio, 2) for name, ratio in ratios.items()}
    sys.stdout.write(json.dumps({"ratios": rounded}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
