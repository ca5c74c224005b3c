"""The workflow that tries the app on Macs can't run here. What can be checked: that it names what exists."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.__main__ import main

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "macos.yml"
SCRIPTS = [ROOT / "packaging" / name for name in ("release.sh", "smoke.sh")]


def workflow() -> dict[str, Any]:
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))


def steps() -> Iterator[dict[str, Any]]:
    for job in workflow()["jobs"].values():
        yield from job["steps"]


def commands() -> str:
    """All that it runs, and all that its scripts run."""
    runs = [step["run"] for step in steps() if "run" in step]
    return "\n".join([*runs, *(script.read_text(encoding="utf-8") for script in SCRIPTS)])


def keys(node: yaml.Node) -> Iterator[list[str]]:
    """The keys of each mapping below node."""
    if isinstance(node, yaml.MappingNode):
        yield [key.value for key, _value in node.value]
        for _key, value in node.value:
            yield from keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from keys(value)


def test_no_key_is_there_twice() -> None:
    root = yaml.SafeLoader(WORKFLOW.read_text(encoding="utf-8")).get_single_node()
    assert root is not None
    mappings = list(keys(root))
    assert len(mappings) > 30
    assert all(len(set(names)) == len(names) for names in mappings)


def test_what_it_may_do_is_little() -> None:
    found = workflow()
    assert found["permissions"] == {"contents": "read"}
    jobs = found["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "smoke": None,
        "release": {"contents": "write"},
    }
    assert jobs["release"]["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_only_github_s_own_actions_at_a_version() -> None:
    used = {step["uses"] for step in steps() if "uses" in step}
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)


def test_only_the_gpu_may_fail() -> None:
    forgiven = [step["run"] for step in steps() if step.get("continue-on-error")]
    assert forgiven == ["bash packaging/smoke.sh gpu"]


def test_the_files_and_targets_that_it_names_exist() -> None:
    files = set(re.findall(r"packaging/[\w.]+\w", commands()))
    assert {"packaging/verify.py", "packaging/entitlements.plist"} <= files
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []
    targets = set(re.findall(r"^make (\w+)$", commands(), re.MULTILINE))
    assert targets == {"app"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_files_that_the_readme_names_exist() -> None:
    text = (ROOT / "packaging" / "README.md").read_text(encoding="utf-8")
    files = set(re.findall(r"packaging/[\w./]+\w", text))
    files |= {
        f"packaging/{file}" for file in re.findall(r"`([\w.]+\.(?:c|toml|lock|plist))`", text)
    }
    files |= {f"packaging/{file}" for file in re.findall(r"\]\(([\w/.]+)\)", text)}
    assert {"packaging/launcher.c", "packaging/licences/Qt.txt"} <= files
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []


def test_every_step_of_the_smoke_test_is_one_that_the_script_has() -> None:
    asked = set(re.findall(r"^bash packaging/smoke\.sh (\w+)", commands(), re.MULTILINE))
    script = SCRIPTS[1].read_text(encoding="utf-8")
    known = set(re.findall(r"^ +(\w+(?: \| \w+)*)\)", script, re.MULTILINE))
    assert asked == {word for line in known for word in line.split(" | ")}


def test_the_app_has_the_options_that_it_is_started_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = set(re.findall(r"--selftest[\w-]*", commands()))
    assert options == {"--selftest", "--selftest-file", "--selftest-device"}
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(re.search(rf"^  {option} ", said, re.MULTILINE) for option in options)
    assert "--selftest-device {gpu,cpu}" in said


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_what_it_runs_is_shell() -> None:
    runs = [step["run"] for step in steps() if "run" in step]
    for script in [*runs, *(file.read_text(encoding="utf-8") for file in SCRIPTS)]:
        command = ["bash", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "value", script)]
        done = subprocess.run(command, check=False, text=True, capture_output=True)
        assert not done.stderr


def test_one_thing_is_allowed_to_the_signed_app() -> None:
    entitlements = plistlib.loads((ROOT / "packaging" / "entitlements.plist").read_bytes())
    assert entitlements == {"com.apple.security.cs.disable-library-validation": True}
