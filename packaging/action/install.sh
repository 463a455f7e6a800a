#!/usr/bin/env bash
# Unpacks an archive of Selvedge on a runner and puts its programs on the path of later steps.
# Environment: ARCHIVE (file or URL), SHA256 (its checksum, or empty); RUNNER_TEMP and GITHUB_PATH, which GitHub sets.
set -euo pipefail

file=$ARCHIVE
if [[ $ARCHIVE == *://* ]]; then
    file=$RUNNER_TEMP/selvedge.tar.gz
    curl --fail --silent --show-error --location --output "$file" "$ARCHIVE"
fi
if [[ -n ${SHA256:-} ]]; then
    echo "$SHA256  $file" | sha256sum --check --quiet -
fi
to=$RUNNER_TEMP/selvedge
mkdir -p "$to"
tar --extract --gzip --strip-components=1 --directory "$to" --file "$file"
"$to/bin/selvedge" --version
printf '%s\n' "$to/bin" "$to/share/selvedge" >>"$GITHUB_PATH"
