#!/usr/bin/env bash
# Plays compose.yaml with a Docker daemon of its own, in network, mount and process namespaces of their own: no port, bridge
# or container is seen outside, and whatever is left ends with them. No registry is reached: images with the names in
# compose.yaml are made of this machine's programs. The image of Weaver is built by the Dockerfile, whose toolchain image has
# a program built here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(docker.io docker-compose postgresql redis-server busybox-static curl jq iproute2)

fail() {
	echo "compose-test: $*" >&2
	exit 1
}

image_of() { # SERVICE: the name in compose.yaml
	awk -v service="  $1:" '$0 == service { on = 1 } on && $1 == "image:" { print $2; exit }' compose.yaml
}

postgres_bin() {
	local dir
	for dir in "${WEAVER_POSTGRES_BIN:-}" /usr/lib/postgresql/*/bin; do
		[ ! -x "$dir/initdb" ] || echo "$dir"
	done | tail -1
}

# ---- Outside: programs and the contents of images.

# What Debian calls them; each is found by a program of it.
missing() {
	local program
	for program in dockerd docker-compose redis-server busybox curl jq ip; do
		command -v "$program" >/dev/null || echo "$program"
	done
	[ -n "$(postgres_bin)" ] || echo initdb
}

install_programs() {
	scripts/services.sh # PostgreSQL and Redis without their services
	[ -n "$(missing)" ] || return 0
	local policy=/usr/sbin/policy-rc.d made=
	if [ ! -e "$policy" ]; then # Docker's service stays off
		made="$policy"
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } >&2 || true
	[ -z "$made" ] || rm -f "$made"
	hash -r
	[ -z "$(missing)" ] || fail "$(missing | tr '\n' ' ')missing: apt-get install -y --no-install-recommends ${packages[*]}"
}

# with_libraries ROOT FILE...: copies programs and what they are linked with.
with_libraries() {
	local root="$1" file lib
	shift
	for file; do
		cp --parents -L "$file" "$root"
		{ ldd "$file" 2>/dev/null || true; } | grep -oE '/[^ ]+' | while read -r lib; do
			[ -e "$root$lib" ] || cp --parents -L "$lib" "$root"
		done
	done
}

# small ROOT: a root folder with busybox.
small() {
	mkdir -p "$1"/{bin,etc,tmp,run}
	cp "$(command -v busybox)" "$1/bin/busybox"
	ln -s busybox "$1/bin/sh"
	local name
	for name in mkdir cp dirname cat wget; do ln -s busybox "$1/bin/$name"; done
	printf 'root:x:0:0::/:/bin/sh\npostgres:x:999:999::/:/bin/sh\n' >"$1/etc/passwd"
	chmod 1777 "$1/tmp"
}

contents_of_images() {
	local root pg bin file version
	CGO_ENABLED=0 ${GO:-go} build -trimpath -buildvcs=false -tags timetzdata -ldflags '-s -w' -o "$work/weaver" ./cmd/weaver
	version="$(image_of s3)" version="${version##*:}"
	if [ ! -x "bin/versitygw-$version" ]; then
		echo "compose-test: building versitygw $version (minutes, the first time)" >&2
		mkdir -p bin
		GOBIN="$work/bin" GOFLAGS=-trimpath CGO_ENABLED=0 ${GO:-go} install -ldflags '-s -w' "github.com/versity/versitygw/cmd/versitygw@$version"
		cp "$work/bin/versitygw" "bin/versitygw-$version"
	fi

	root="$work/golang" # its go puts a program in place that was built before
	small "$root"
	mkdir -p "$root/etc/ssl/certs"
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || touch "$root/etc/ssl/certs/ca-certificates.crt"
	cp "$work/weaver" "$root/weaver"
	cat >"$root/bin/go" <<-'EOF'
		#!/bin/sh
		[ "$1" = build ] || exit 0
		while [ "$1" != -o ]; do shift; done
		mkdir -p "$(dirname "$2")" && cp /weaver "$2"
	EOF
	chmod 755 "$root/bin/go"

	root="$work/s3"
	small "$root"
	cp "bin/versitygw-$version" "$root/bin/versitygw"

	root="$work/redis"
	small "$root"
	with_libraries "$root" "$(readlink -f "$(command -v redis-server)")" "$(command -v redis-cli)"
	ln -sf "$(readlink -f "$(command -v redis-server)")" "$root/bin/redis-server"
	ln -sf "$(command -v redis-cli)" "$root/bin/redis-cli"

	root="$work/postgres"
	small "$root"
	bin="$(postgres_bin)" pg="$(dirname "$(postgres_bin)")"
	for file in postgres initdb pg_ctl psql pg_isready; do with_libraries "$root" "$bin/$file"; done
	cp -r --parents "$pg/lib" "$("$bin/pg_config" --sharedir 2>/dev/null || echo "/usr/share/postgresql/$(basename "$pg")")" "$root"
	rm -rf "$root$pg"/lib/{bitcode,llvmjit*} # which need LLVM
	[ ! -d /usr/share/zoneinfo ] || cp -r --parents /usr/share/zoneinfo "$root"
	mkdir -p "$root/var/lib/postgresql/data" "$root/run/postgresql"
	ln -s /run "$root/var/run"
	chown -R 999:999 "$root/var/lib/postgresql" "$root/run/postgresql"
	for file in postgres initdb psql pg_isready; do ln -s "$bin/$file" "$root/bin/$file"; done
	cat >"$root/entrypoint" <<-'EOF' # what the official image does with these variables
		#!/bin/sh
		set -e
		data=/var/lib/postgresql/data
		if [ ! -s "$data/PG_VERSION" ]; then
			echo "$POSTGRES_PASSWORD" >/tmp/password
			initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 --locale=C -E UTF8
			echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
			echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D "$data" postgres
		fi
		exec "$@" -D "$data" -c listen_addresses='*' -c unix_socket_directories=/run/postgresql
	EOF
	chmod 755 "$root/entrypoint"
}

# ---- Inside the namespaces.

# image NAME FOLDER CHANGE...
image() {
	local name="$1" folder="$2" changes=() change
	shift 2
	for change; do changes+=(-c "$change"); done
	tar -C "$work/$folder" -c . | docker import "${changes[@]}" - "$name" >/dev/null
}

start_daemon() {
	ip link set lo up
	mount --make-rprivate /
	dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" --cgroup-parent "/$(basename "$work")" -H "$DOCKER_HOST" >"$work/dockerd.log" 2>&1 &
	daemon=$!
	for ((i = 0; i < 300; i++)); do
		if docker version >/dev/null 2>&1; then return; fi
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.2
	done
	tail -5 "$work/dockerd.log" >&2
	fail "dockerd does not start on this machine. On one that has a Docker daemon: docker compose up --build --wait"
}

container() { compose ps -q "$1"; }

# until_true SECONDS WHAT COMMAND...
until_true() {
	local end=$((SECONDS + $1)) what="$2"
	shift 2
	until "$@"; do
		if ((SECONDS > end)); then
			compose ps >&2
			compose logs --tail 20 >&2
			fail "not in time: $what"
		fi
		sleep 0.5
	done
}

healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(container "$1")")" = healthy ]; }

all_healthy() {
	local service
	for service in postgres redis s3 api worker-1 worker-2; do healthy "$service" || return 1; done
}

api() { curl -sS --fail-with-body --max-time 90 -H "Authorization: Bearer $token" "$@"; }

# enqueue JSON: prints the ID.
enqueue() { api --json "$1" http://127.0.0.1:8080/v1/tasks | jq -r .id; }

succeeded() {
	local state
	state="$(api "http://127.0.0.1:8080/v1/tasks/$1?wait=20s" | jq -r .state)"
	case "$state" in
	succeeded) return 0 ;;
	failed | cancelled | blocked) fail "task $1: $state" ;;
	esac
	return 1
}

say() { echo "compose-test: $* (${SECONDS} s)"; }

scenario() {
	start_daemon
	say "a daemon runs"
	image golang:stand-in golang 'ENV PATH=/bin'
	image "$(image_of postgres)" postgres 'USER 999:999' 'ENTRYPOINT ["/entrypoint"]' 'ENV PATH=/bin' 'ENV TZ=UTC'
	image "$(image_of redis)" redis 'ENV PATH=/bin'
	image "$(image_of s3)" s3 'ENTRYPOINT ["/bin/versitygw"]' 'ENV PATH=/bin'
	DOCKER_BUILDKIT=1 docker build -q --build-arg GO_IMAGE=golang:stand-in -t weaver:local . >/dev/null
	say "images are made"

	compose up -d
	until_true 180 "all services are healthy" all_healthy
	token="$(docker logs "$(container token)" 2>/dev/null | tail -1)"
	say "all services are healthy"

	local id one='{"task_type": "weaver.exec.run.v1", "input": {"argv": ["/weaver", "version"]}}'
	id="$(enqueue "$one")"
	until_true 60 "the first task ends" succeeded "$id"
	api "http://127.0.0.1:8080/v1/tasks/$id/payloads/output" | jq -e '.value.exit_code == 0 and (.value.stdout | test("weaver"))' >/dev/null
	docker exec "$(container redis)" redis-cli info commandstats | grep -q 'cmdstat_rpush:' || fail "no hint went through Redis"
	say "a task ran"

	# An input of 200 KB and an artifact of the size of the program, which goes up in parts.
	local large artifact
	large="$(printf 'x%.0s' {1..50000})"
	jq -n --arg x "$large" '{task_type: "weaver.exec.run.v1", input: {argv: ["/weaver", "version"], dir: "/", artifacts: ["weaver"], env: {A: $x, B: $x, C: $x, D: $x}}}' >"$work/large.json"
	id="$(enqueue "@$work/large.json")"
	until_true 120 "the task with an artifact ends" succeeded "$id"
	artifact="$(api "http://127.0.0.1:8080/v1/tasks/$id/artifacts" | jq -r ".items[0].artifact_id")"
	api "http://127.0.0.1:8080/v1/artifacts/$artifact" | cmp - "$work/weaver"
	[ -n "$(find "$(docker volume inspect -f '{{.Mountpoint}}' "${COMPOSE_PROJECT_NAME}_buckets")/weaver" -type f -size +1M)" ] || fail "the artifact is not in the S3 server"
	say "a large value and an artifact went through S3"

	compose kill redis
	id="$(enqueue "$one")"
	until_true 60 "a task ends without Redis" succeeded "$id"
	compose start redis
	compose restart s3
	say "a task ran without Redis"

	local ids=() i
	for i in {1..40}; do ids+=("$(enqueue "$one")"); done
	compose kill worker-1
	for id in "${ids[@]}"; do until_true 180 "all tasks end after a kill" succeeded "$id"; done
	say "40 tasks ran, and a worker was killed"

	compose up -d
	until_true 120 "all services are healthy again" all_healthy
	[ "$(docker logs "$(container token)" 2>/dev/null | tail -1)" = "$token" ] || fail "the second start printed another token"
	compose run --rm migrate doctor

	local service code containers=()
	for service in api worker-1 worker-2; do containers+=("$(container "$service")"); done
	compose stop -t 40 api worker-1 worker-2
	for id in "${containers[@]}"; do
		code="$(docker inspect -f '{{.State.ExitCode}}' "$id")"
		[ "$code" = 0 ] || fail "a process of weaver ended with $code"
	done
	compose down -v
	kill "$daemon"
	wait "$daemon" || true
	say "ok"
}

if [ "${1:-}" = inside ]; then
	work="$2"
	export DOCKER_HOST="unix://$work/sock" COMPOSE_PROJECT_NAME=weaver
	# The oldest of the machine: it builds without plug-ins.
	docker() { if [ -x /usr/bin/docker ]; then /usr/bin/docker "$@"; else command docker "$@"; fi; }
	if docker compose version >/dev/null 2>&1; then
		compose() { docker compose "$@"; }
	else
		compose() { docker-compose "$@"; }
	fi
	scenario
	exit
fi

[ "$(uname)" = Linux ] || fail "needs Linux. Elsewhere: docker compose up --build --wait"
[ "$(id -u)" = 0 ] || fail "a Docker daemon needs root: sudo make compose-test"
work="$(mktemp -d -t compose-test.XXXXXX)"
clean() {
	find /sys/fs/cgroup -depth -type d -path "*/$(basename "$work")*" -exec rmdir {} + 2>/dev/null || true
	rm -rf "$work"
}
trap clean EXIT
install_programs
contents_of_images
say "programs are built"
unshare --net --mount --pid --fork --mount-proc --kill-child "${BASH_SOURCE[0]}" inside "$work"
