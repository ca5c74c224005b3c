"""Contracts of the documents, and of the files for GitHub and pre-commit.

All commands, files and libraries named in these files must exist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "DECISIONS.md", "CONTRIBUTING.md", "SECURITY.md"]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))


def test_tests_workflow_runs_make_test_on_linux_and_macos() -> None:
    job: dict[str, Any] = yaml.safe_load(read(".github/workflows/tests.yml"))["jobs"]["test"]

    systems = {name.split("-")[0] for name in job["strategy"]["matrix"]["os"]}
    unconditional = [step["run"] for step in job["steps"] if "run" in step and "if" not in step]
    assert systems == {"ubuntu", "macos"}
    assert unconditional == ["make test"]


def test_tests_workflow_installs_the_packages_of_the_ci_script() -> None:
    (packages,) = re.findall(r'packages="(.*)"', read(".ci/run"))

    workflow = read(".github/workflows/tests.yml")
    assert [package for package in packages.split() if package not in workflow] == []


def test_pre_commit_hooks_start_tools_of_the_locked_environment() -> None:
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    programs = [hook["entry"].split()[0] for hook in repository["hooks"]]

    assert repository["repo"] == "local"
    assert len(programs) > 3
    assert [program for program in programs if not (ROOT / program).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_issue_form_has_what_github_requires(form: Path) -> None:
    content: dict[str, Any] = yaml.safe_load(form.read_text(encoding="utf-8"))
    identifiers = [field["id"] for field in content["body"]]

    assert content["name"]
    assert content["description"]
    assert len(set(identifiers)) == len(identifiers)
    assert all(field["attributes"]["label"] for field in content["body"])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_names_only_files_and_targets_that_exist(name: str) -> None:
    text = read(name)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    paths = re.findall(r"`((?:app|engine|tests|packaging|resources)/[\w/.]*\w/?)`", text)
    commands = re.findall(r"^ {4}make ([a-z ]+?)(?: [A-Z].*)?(?:  .*)?$", text, re.MULTILINE)
    targets = {target for line in commands for target in line.split()}

    assert links or paths
    assert [path for path in {*links, *paths} if not (ROOT / path).exists()] == []
    assert targets <= make_targets()
