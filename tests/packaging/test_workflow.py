"""Tests of macos.yml, the workflow that tests the app on Macs.

The workflow itself can't run here. The tests check its permissions. They also check that the files,
targets and options in the workflow exist.
"""

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
    """Return the shell commands of the workflow and of the scripts that it runs."""
    runs = [step["run"] for step in steps() if "run" in step]
    return "\n".join([*runs, *(script.read_text(encoding="utf-8") for script in SCRIPTS)])


def keys(node: yaml.Node) -> Iterator[list[str]]:
    """Yield a list of the keys for each mapping in a YAML node."""
    if isinstance(node, yaml.MappingNode):
        yield [key.value for key, _value in node.value]
        for _key, value in node.value:
            yield from keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from keys(value)


def test_workflow_has_no_duplicate_keys() -> None:
    root = yaml.SafeLoader(WORKFLOW.read_text(encoding="utf-8")).get_single_node()
    assert root is not None
    mappings = list(keys(root))
    assert len(mappings) > 30
    assert all(len(set(names)) == len(names) for names in mappings)


def test_only_the_release_job_may_write_contents() -> None:
    found = workflow()
    assert found["permissions"] == {"contents": "read"}
    jobs = found["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "smoke": None,
        "release": {"contents": "write"},
    }
    assert jobs["release"]["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_workflow_uses_only_versioned_actions_of_github() -> None:
    used = {step["uses"] for step in steps() if "uses" in step}
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)


def test_only_the_gpu_step_may_fail() -> None:
    forgiven = [step["run"] for step in steps() if step.get("continue-on-error")]
    assert forgiven == ["bash packaging/smoke.sh gpu"]


def test_files_and_targets_in_the_workflow_exist() -> None:
    files = set(re.findall(r"packaging/[\w.]+\w", commands()))
    assert {"packaging/verify.py", "packaging/entitlements.plist"} <= files
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []
    targets = set(re.findall(r"^make (\w+)$", commands(), re.MULTILINE))
    assert targets == {"app"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_files_named_in_packaging_readme_exist() -> None:
    text = (ROOT / "packaging" / "README.md").read_text(encoding="utf-8")
    files = set(re.findall(r"packaging/[\w./]+\w", text))
    files |= {
        f"packaging/{file}" for file in re.findall(r"`([\w.]+\.(?:c|toml|lock|plist))`", text)
    }
    files |= {f"packaging/{file}" for file in re.findall(r"\]\(([\w/.]+)\)", text)}
    assert {"packaging/launcher.c", "packaging/licences/Qt.txt"} <= files
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []


def test_workflow_runs_exactly_the_steps_of_smoke_sh() -> None:
    asked = set(re.findall(r"^bash packaging/smoke\.sh (\w+)", commands(), re.MULTILINE))
    script = SCRIPTS[1].read_text(encoding="utf-8")
    known = set(re.findall(r"^ +(\w+(?: \| \w+)*)\)", script, re.MULTILINE))
    assert asked == {word for line in known for word in line.split(" | ")}


def test_app_has_the_selftest_options_of_the_workflow(
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
def test_commands_of_the_workflow_are_valid_bash() -> None:
    runs = [step["run"] for step in steps() if "run" in step]
    for script in [*runs, *(file.read_text(encoding="utf-8") for file in SCRIPTS)]:
        command = ["bash", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "value", script)]
        done = subprocess.run(command, check=False, text=True, capture_output=True)
        assert not done.stderr


def test_signed_app_has_one_entitlement() -> None:
    entitlements = plistlib.loads((ROOT / "packaging" / "entitlements.plist").read_bytes())
    assert entitlements == {"com.apple.security.cs.disable-library-validation": True}
