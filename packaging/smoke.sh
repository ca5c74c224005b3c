#!/usr/bin/env bash
# Tests the archives in dist/ as users download them, on a Mac. Installs nothing.
#
#   packaging/smoke.sh unpack    the zip and the disk image hold the same app, and its signature is whole
#   packaging/smoke.sh cpu       the app answers on the processor
#   packaging/smoke.sh gpu       the app answers on the GPU
#   packaging/smoke.sh open      the app answers on the processor, started the way the Finder does it
#   packaging/smoke.sh whole     after all that, its signature is still whole
set -euo pipefail
cd "$(dirname "$0")/.."
place=build/smoke
app=$place/Rejoinder.app
volume=$place/volume
report=$PWD/$place/report.json

unpack() {
    local image=(dist/Rejoinder-*.dmg)
    rm -rf "$place"
    mkdir -p "$volume"
    ditto -x -k dist/Rejoinder-*.zip "$place"
    plutil -lint "$app/Contents/Info.plist"
    whole
    hdiutil verify -quiet "${image[0]}"
    hdiutil attach -quiet -readonly -nobrowse -mountpoint "$volume" "${image[0]}"
    trap 'hdiutil detach -quiet -force "$volume"' EXIT
    test "$(readlink "$volume/Applications")" = /Applications
    diff -r "$app" "$volume/Rejoinder.app"
    codesign --verify --deep --strict --verbose=2 "$volume/Rejoinder.app"
}

whole() {
    codesign --verify --deep --strict --verbose=2 "$app"
}

# Like the Finder, start the app in / with a minimal environment: HOME and the offscreen platform only.
answer() {
    local home=$PWD/$place/home-$1 executable=$PWD/$app/Contents/MacOS/Rejoinder
    mkdir -p "$home"
    cd /
    env -i HOME="$home" QT_QPA_PLATFORM=offscreen "$executable" --data-dir "$home/data" --selftest --selftest-device "$1"
}

# open does not return the app's exit status, so the result is read from the app's report.
open_it() {
    rm -f "$report"
    open -W "$app" --args --data-dir "$PWD/$place/home-open/data" --selftest-file "$report" --selftest-device cpu
    cat "$report"
    grep -q '"problems": \[\]' "$report"
}

case ${1:-} in
    unpack) unpack ;;
    cpu | gpu) answer "$1" ;;
    open) open_it ;;
    whole) whole ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
