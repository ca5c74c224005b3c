#!/usr/bin/env bash
# Checks on Linux that Qt has a display and its libraries, with clearer messages than Qt's own.
set -u
[ "$(uname -s)" = Linux ] || exit 0
if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${QT_QPA_PLATFORM:-}" ]; then
    echo "No display: run this on a desktop, or under Xvfb (xvfb-run make run)." >&2
    exit 1
fi
[ "${QT_QPA_PLATFORM:-}" = offscreen ] && exit 0
missing=""
for pair in libEGL.so.1:libegl1 libGL.so.1:libgl1 libxkbcommon-x11.so.0:libxkbcommon-x11-0 \
    libxcb-cursor.so.0:libxcb-cursor0 libxcb-icccm.so.4:libxcb-icccm4 libxcb-keysyms.so.1:libxcb-keysyms1 \
    libdbus-1.so.3:libdbus-1-3 libfontconfig.so.1:libfontconfig1; do
    ldconfig -p | grep -q "${pair%%:*}" || missing="$missing ${pair##*:}"
done
if [ -n "$missing" ]; then
    echo "Qt needs libraries that are not installed: apt-get install -y$missing" >&2
    exit 1
fi
