#!/usr/bin/env bash
# Signs dist/Rejoinder.app with a Developer ID, has Apple notarise it, and packs it again. macOS only.
#
#   packaging/release.sh "Developer ID Application: NAME (TEAM)" PROFILE
#
# PROFILE names the credentials in the keychain that `xcrun notarytool store-credentials PROFILE` stored.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -ne 2 ]; then
    echo 'usage: packaging/release.sh "Developer ID Application: NAME (TEAM)" PROFILE' >&2
    exit 2
fi
identity=$1
profile=$2
app=dist/Rejoinder.app
version=$(/usr/libexec/PlistBuddy -c "Print :CFBundleShortVersionString" "$app/Contents/Info.plist")
archive=dist/Rejoinder-$version
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Sign the libraries first, then Qt's frameworks, then the app: a seal covers the signatures of its content.
find "$app/Contents/Resources" -type f \( -name '*.so' -o -name '*.dylib' \) \
    -exec codesign --force --timestamp --options runtime --sign "$identity" {} +
find "$app/Contents/Resources" -type d -name '*.framework' -prune \
    -exec codesign --force --timestamp --options runtime --sign "$identity" {} +
codesign --force --timestamp --options runtime --sign "$identity" \
    --entitlements packaging/entitlements.plist "$app"
codesign --verify --deep --strict --verbose=2 "$app"

# With a stapled ticket the app opens without a network. Make the archives after stapling, so that the app in
# them has its ticket.
ditto -c -k --keepParent "$app" "$scratch/app.zip"
xcrun notarytool submit "$scratch/app.zip" --keychain-profile "$profile" --wait
xcrun stapler staple "$app"
spctl --assess --type execute --verbose=2 "$app"
rm -f "$archive.zip" "$archive.dmg"
ditto -c -k --keepParent "$app" "$archive.zip"

mkdir "$scratch/volume"
ditto "$app" "$scratch/volume/Rejoinder.app"
ln -s /Applications "$scratch/volume/Applications"
hdiutil create -quiet -volname Rejoinder -srcfolder "$scratch/volume" -fs HFS+ -format UDZO "$archive.dmg"
codesign --force --timestamp --sign "$identity" "$archive.dmg"
xcrun notarytool submit "$archive.dmg" --keychain-profile "$profile" --wait
xcrun stapler staple "$archive.dmg"
spctl --assess --type open --context context:primary-signature --verbose=2 "$archive.dmg"
