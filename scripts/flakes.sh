#!/usr/bin/env bash
# Runs the tests of every package N times, P processes at once, shuffled, with
# GOMAXPROCS 1 and 2 by turns, and reports which tests failed how often.
# Packages whose tests start processes, servers or sockets run 3*N times.
# With RACE=1 the binaries have the race detector. Arguments choose packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go="${GO:-go}" rounds="${N:-10}" at_once="${P:-3}"
if [ -n "${RACE:-}" ]; then
	CC="$(scripts/cc.sh)"
	export CC CGO_ENABLED=1 GOFLAGS="${GOFLAGS:-} -race"
fi

out="$(mktemp -d)"
echo "flakes: logs in $out"
# A line per package that has tests: its folder and how often it runs.
# shellcheck disable=SC2016
"$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}{{end}}' "$@" |
	awk -v n="$rounds" 'NF { many = / (os\/exec|net|net\/http|net\/http\/httptest|[^ ]*\/internal\/pgtest)( |$)/; print $1, many ? 3*n : n }' >"$out/packages"

build() { # DIR
	(cd "$1" && "$go" test -c -o "$out/$(tr / _ <<<"$1").test" .)
}
play() { # DIR ROUND
	local name log
	name="$(tr / _ <<<"$1")"
	log="$out/$name.$2.log"
	if (cd "$1" && GOWORK='' GOMAXPROCS=$((1 + $2 % 2)) "$out/$name.test" -test.shuffle=on -test.timeout=20m) >"$log" 2>&1; then
		rm -f "$log"
	else
		grep -oE '^ *--- FAIL: [^ ]+|^panic: .*|^WARNING: DATA RACE' "$log" | sort -u | sed "s|^ *|${1#"$PWD"/} |" >>"$out/failed" || echo "${1#"$PWD"/} exit without a failed test" >>"$out/failed"
	fi
}
export -f build play
export go out PWD

cut -d ' ' -f 1 "$out/packages" | xargs -P 2 -I DIR bash -c 'build DIR'
awk -v most="$((3 * rounds))" '{ dir[NR] = $1; n[NR] = $2 } END { for (r = 1; r <= most; r++) for (i = 1; i <= NR; i++) if (r <= n[i]) print dir[i], r }' "$out/packages" |
	xargs -P "$at_once" -L 1 bash -c 'play "$0" "$1"'

awk '{ n += $2 } END { print n " runs of " NR " packages" }' "$out/packages"
if [ -s "$out/failed" ]; then
	echo "failed, with the number of runs:"
	sort "$out/failed" | uniq -c | sort -rn
	exit 1
fi
echo "flakes: no failure"
rm -rf "$out"
