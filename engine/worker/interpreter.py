"""The command of every process that runs our own code, on this machine and on other hosts.

Python would put the working folder before its own modules: `rejoinder chat --model .` in a model's
folder would run the folder's json.py. PYTHONPATH and other variables have the same power.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The folder of the packages `engine` and `app`. A copy of the source tree runs its own modules.
_ROOT = str(Path(__file__).parents[2])
# E: ignore PYTHON... variables. P: leave the working folder out of sys.path. The launcher of the
# bundle does the same itself and removes exactly this option (packaging/launcher.c).
_OPTION = "-EP"
_PROGRAM = """\
import sys
root = sys.argv.pop(1)
root in sys.path or sys.path.insert(0, root)
from {module} import main
sys.exit(main())"""


def own_program(module: str, *arguments: str) -> list[str]:
    """Return the command that calls the function `main` of a module in a new process.

    Neither the working folder nor the environment decides what the process imports.

    Args:
        module: the name of the module.
        arguments: the arguments in sys.argv[1:] of the process.
    """
    return [sys.executable, _OPTION, "-c", _PROGRAM.format(module=module), _ROOT, *arguments]
