#!/usr/bin/env bash
# Runs the tests named TestE2E…, which `go test` skips unless WEAVER_E2E is set,
# and fails unless each of them ran and passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go="${GO:-go}"

packages="$(grep -rlE '^func TestE2E' --include='*_test.go' . | xargs -n 1 dirname | sort -u)"
# Package names have no spaces: split them into words.
# shellcheck disable=SC2086
want="$($go test -list '^TestE2E' $packages | grep '^TestE2E' | sort)"

output="$(mktemp)"
trap 'rm -f "$output"' EXIT
# The programs that they build are no inputs that the test cache knows of.
# The workspace is of these packages, not of the go commands that tests run. One package at a time: each builds
# programs on all cores, and a browser beside it gets too little of them.
# shellcheck disable=SC2086
WEAVER_E2E=1 $go test -p=1 -exec='env -u GOWORK' -count=1 -v -run '^TestE2E' -timeout=20m $packages | tee "$output"

passed="$(sed -nE 's/^--- PASS: (TestE2E[^ ]*) .*/\1/p' "$output" | sort)"
if [ "$passed" != "$want" ]; then
	printf 'e2e: not every test ran; wanted:\n%s\npassed:\n%s\n' "$want" "$passed" >&2
	exit 1
fi
echo "e2e: $(printf '%s\n' "$want" | wc -l | tr -d ' ') tests passed"
