#!/usr/bin/env bash
# Finds PostgreSQL, PgBouncer, Redis and Chromium, which the tests start for themselves
# (internal/pgtest, internal/redistest and internal/systemtest/web look at the same places). What is
# missing it installs where it may, and no server of the system comes with it;
# otherwise it prints the command to run. It prints nothing when everything is there.
# With "firefox" it looks for Firefox, too, which only `make soak-web` and `make soak-tab` need.
# With "s3" it only builds versitygw, an S3 server, into the bin folder of GOPATH: four minutes of CPU.
set -euo pipefail

if [ "${1:-}" = s3 ]; then
	gopath="$(go env GOPATH)"
	bin="${gopath%%:*}/bin"
	if ! command -v versitygw >/dev/null && [ ! -x "$bin/versitygw" ]; then
		echo "tests need versitygw: building it takes minutes" >&2
		GOBIN="$bin" GOFLAGS= go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	fi
	exit
fi

oldest=13

# postgres_in DIR: it has the programs of a server that is new enough.
postgres_in() {
	local version
	[ -x "$1/postgres" ] && [ -x "$1/initdb" ] && [ -x "$1/pg_basebackup" ] || return 1
	version="$("$1/postgres" --version 2>/dev/null)" || return 1
	[[ "$version" =~ [0-9]+ ]] && [ "${BASH_REMATCH[0]}" -ge "$oldest" ]
}

find_postgres() {
	local dir path
	# A server refuses to run as root: pgtest starts it as user postgres then.
	[ "$(id -u)" != 0 ] || id postgres >/dev/null 2>&1 || return 1
	if [ -n "${WEAVER_POSTGRES_BIN:-}" ]; then
		postgres_in "$WEAVER_POSTGRES_BIN"
		return
	fi
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
		postgres_in "$dir" && return
	done
	path="$(command -v postgres)" && postgres_in "$(dirname "$path")" && return
	dir="$(pg_config --bindir 2>/dev/null)" && postgres_in "$dir"
}

find_pgbouncer() {
	command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || [ -x /usr/local/sbin/pgbouncer ]
}

find_redis() {
	command -v redis-server >/dev/null
}

# A Chrome does as well.
find_chromium() {
	local name
	for name in chromium chromium-browser google-chrome google-chrome-stable "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
		/Applications/Chromium.app/Contents/MacOS/Chromium; do
		command -v "$name" >/dev/null && return
	done
	return 1
}

find_firefox() {
	command -v firefox-esr >/dev/null || command -v firefox >/dev/null
}

wanted="${1:-}"
missing=()
find_postgres || missing+=(postgresql)
find_pgbouncer || missing+=(pgbouncer)
find_redis || missing+=(redis-server)
find_chromium || missing+=(chromium)
[ "$wanted" != firefox ] || find_firefox || missing+=(firefox-esr)
[ ${#missing[@]} != 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
	as_root=(sudo -n)
fi
policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.conf
saved=

# Everything is put back as it was, also after an interrupt.
restore() {
	if [ -e "$saved/policy" ]; then
		"${as_root[@]}" cp -p "$saved/policy" "$policy"
	elif [ -e "$saved/no-policy" ]; then
		"${as_root[@]}" rm -f "$policy"
	fi
	if [ -e "$saved/clusters" ]; then
		"${as_root[@]}" cp -p "$saved/clusters" "$clusters"
	fi
	"${as_root[@]}" rm -rf "$saved"
}

apt_install() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
		install -y --no-install-recommends "$@" >&2
}

install_missing() {
	saved="$(mktemp -d)"
	trap restore EXIT
	"${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -q >&2
	# Packages ask this script before they start a service.
	if [ -e "$policy" ]; then
		"${as_root[@]}" cp -p "$policy" "$saved/policy"
	else
		touch "$saved/no-policy"
	fi
	printf '#!/bin/sh\nexit 101\n' >"$saved/none"
	"${as_root[@]}" install -m 755 "$saved/none" "$policy"
	if [[ " ${missing[*]} " == *" postgresql "* ]]; then
		# The first server package makes a cluster, unless this file says no.
		apt_install postgresql-common
		"${as_root[@]}" cp -p "$clusters" "$saved/clusters"
		{ cat "$clusters" && printf '\ncreate_main_cluster = false\n'; } >"$saved/no-cluster"
		"${as_root[@]}" cp "$saved/no-cluster" "$clusters"
	fi
	apt_install "${missing[@]}"
	local service
	for service in pgbouncer redis-server; do
		if [[ " ${missing[*]} " == *" $service "* ]]; then
			"${as_root[@]}" update-rc.d "$service" disable >&2 # it does not start with the machine either
		fi
	done
}

if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
	echo "tests need ${missing[*]}: installing" >&2
	install_missing
	hash -r
	find_postgres && find_pgbouncer && find_redis && find_chromium && { [ "$wanted" != firefox ] || find_firefox; } && exit
fi

cat >&2 <<EOF
The tests need ${missing[*]} (PostgreSQL $oldest or later, PgBouncer, Redis 7 or later, Chromium or Chrome), which they start for themselves. Install it:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}
  Fedora:          sudo dnf install postgresql-server pgbouncer redis chromium
  Alpine:          apk add postgresql pgbouncer redis chromium
  macOS:           brew install postgresql@17 pgbouncer redis && brew install --cask chromium
Programs in another folder: WEAVER_POSTGRES_BIN=<folder of postgres and initdb>.
EOF
exit 1
