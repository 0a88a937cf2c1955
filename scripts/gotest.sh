#!/usr/bin/env bash
# Runs `go test` with the given flags and packages: a line per package, the
# output of each failed test, then the ten slowest tests. Packages that failed
# run once more, only to tell a test that always fails from one that fails now
# and then. The exit status is that of the first run.
set -uo pipefail
go="${GO:-go}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# In a workspace the go command takes no -modfile.
gotestsum="$(GOWORK=off "$go" tool -n -modfile=tools/go.mod gotestsum)" || exit

events="$(mktemp)"
trap 'rm -f "$events"' EXIT

# The workspace is of these packages, not of the go commands that tests run.
[ -z "${GOWORK:-}" ] || set -- "-exec=env -u GOWORK" "$@"

status=0
"$gotestsum" --format=pkgname --format-hide-empty-pkg --format-icons=text --hide-summary=skipped \
	--jsonfile="$events" -- "$@" || status=$?
# Without those that wait for their subtests.
echo "slowest tests:"
sed -nE 's/.*"Action":"(pass|fail)","Package":"([^"]+)","Test":"([^"]+)","Elapsed":([0-9.]+).*/\2 \3 \4/p' "$events" |
	awk '{ test = $1 " " $2; seconds[test] = $3; if (sub("/[^/ ]*$", "", $2)) parent[$1 " " $2] }
		END { for (t in seconds) if (!(t in parent)) printf "%8.2f s  %s\n", seconds[t], t }' | sort -rn | head -n 10
[ "$status" != 0 ] || exit 0

failed="$(sed -nE '/"Action":"fail"/{/"Test":/!s/.*"Package":"([^"]+)".*/\1/p;}' "$events" | sort -u)"
for package in $failed; do
	flags=()
	for arg in "$@"; do
		case "$arg" in -*) flags+=("$arg") ;; esac
	done
	echo "== again, to tell a test that always fails from one that fails now and then: $package"
	if "$go" test "${flags[@]}" "$package"; then
		echo "== $package FAILS NOW AND THEN: it passed the second time. Mend the test or the race that it met."
	else
		echo "== $package failed twice."
	fi
done
exit "$status"
