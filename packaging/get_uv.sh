#!/usr/bin/env bash
# Installs uv into the virtual environment .tools, so that the system stays unchanged.
set -eu
if ! command -v python3 >/dev/null; then
    echo "Rejoinder needs python3 to set itself up: install Python 3.11 or newer, then try again." >&2
    exit 1
fi
if ! python3 -m venv .tools 2>/dev/null; then
    rm -rf .tools
    echo "python3 cannot make a virtual environment: install the package python3-venv, then try again." >&2
    exit 1
fi
if ! .tools/bin/python -m pip install -q --disable-pip-version-check "uv>=0.9"; then
    rm -rf .tools
    echo "uv could not be fetched: check the network connection, then try again." >&2
    exit 1
fi
