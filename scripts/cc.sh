#!/usr/bin/env bash
# Prints a C compiler that works, for the race detector (it needs cgo). When
# there is none it installs gcc where it may, else it says which command does.
set -euo pipefail

# works CC...: compiles, with the headers of the C library, and links.
works() {
	local out status=0
	out="$(mktemp)"
	printf '#include <stdlib.h>\n#include <pthread.h>\nint main(void) { return 0; }\n' |
		"$@" -x c -o "$out" -pthread - >/dev/null 2>&1 || status=$?
	rm -f "$out"
	return "$status"
}

find_cc() {
	local cc
	for cc in "${CC:-}" "$(go env CC)" gcc clang cc; do
		# CC may carry flags: split it into words.
		# shellcheck disable=SC2086
		if [ -n "$cc" ] && works $cc; then
			printf '%s\n' "$cc"
			return
		fi
	done
	return 1
}

find_cc && exit

install=(apt-get install -y --no-install-recommends gcc libc6-dev)
as_root=()
if [ "$(id -u)" != 0 ]; then
	as_root=(sudo -n)
fi
if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
	echo "no C compiler: installing gcc" >&2
	"${as_root[@]}" apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive "${as_root[@]}" "${install[@]}" >&2
	find_cc && exit
fi

cat >&2 <<EOF
The race detector needs a C compiler and the headers of the C library, and none works here. Install them:
  Debian, Ubuntu:  sudo apt-get update && sudo ${install[*]}
  Fedora:          sudo dnf install gcc glibc-devel
  Alpine:          apk add gcc musl-dev
  macOS:           xcode-select --install
EOF
exit 1
