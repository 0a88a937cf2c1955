#!/usr/bin/env bash
# Builds and checks the dashboard's assets. Only `vendor` and `types` need npm, nothing needs Node.
#   ui.sh build [DIR]   bundle dashboard/ui into DIR, by default dashboard/assets
#   ui.sh check         fail if dashboard/assets differ from a new build
#   ui.sh types         check the types of dashboard/ui with TypeScript
#   ui.sh vendor        fetch the libraries of dashboard/ui/vendor anew
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../dashboard"

esbuild=github.com/evanw/esbuild/cmd/esbuild@v0.28.2
typescript=7.0.2

# Each library with its version, and the files of its package that are kept.
libraries=(
	"preact@10.29.8 LICENSE package.json dist/preact.module.js src/index.d.ts src/index-5.d.ts src/jsx.d.ts src/dom.d.ts hooks/package.json hooks/dist/hooks.module.js hooks/src/index.d.ts jsx-runtime/package.json jsx-runtime/dist/jsxRuntime.module.js jsx-runtime/src/index.d.ts"
	"@preact/signals@2.11.4 LICENSE package.json dist/signals.module.js dist/signals.d.ts"
	"@preact/signals-core@1.14.5 LICENSE package.json dist/signals-core.module.js dist/signals-core.d.ts"
)

build() {
	local out="$1"
	mkdir -p "$out"
	find "$out" -maxdepth 1 -type f -delete
	# The program is the same on every system: NODE_PATH finds the vendored libraries.
	NODE_PATH="$PWD/ui/vendor" GOWORK=off GOFLAGS= CGO_ENABLED=0 go run "$esbuild" \
		ui/src/app.tsx ui/src/theme.ts ui/src/stream.ts ui/src/style.css ui/src/icon.svg --loader:.svg=copy \
		--bundle --minify --format=esm --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning \
		--jsx=automatic --jsx-import-source=preact --entry-names='[name]-[hash]' --outdir="$out"
	for library in preact @preact/signals @preact/signals-core; do
		printf '%s\n\n' "$library"
		cat "ui/vendor/$library/LICENSE"
		printf '\n\n'
	done >"$out/licenses.txt"
}

# npm_needed installs npm where it may.
npm_needed() {
	command -v npm >/dev/null && return
	local as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo -n)
	if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
		"${as_root[@]}" apt-get update -qq >&2
		"${as_root[@]}" apt-get install -y -qq --no-install-recommends npm >&2
	fi
	command -v npm >/dev/null || { echo "npm is missing: sudo apt-get install -y --no-install-recommends npm" >&2; exit 1; }
}

# pack PACKAGE DIR unpacks a package of npm, whose checksum npm compares.
pack() {
	local file
	mkdir -p "$2"
	file="$(npm pack "$1" --silent --ignore-scripts --pack-destination "$2")"
	tar xzf "$2/$file" -C "$2" --strip-components=1
	rm "$2/$file"
}

case "${1:-}" in
build) build "${2:-assets}" ;;
check)
	made="$(mktemp -d)"
	trap 'rm -rf "$made"' EXIT
	build "$made"
	diff -rq "$made" assets || { echo "dashboard/assets differ from dashboard/ui: run make ui" >&2; exit 1; }
	;;
types)
	npm_needed
	system="$(uname -s | tr '[:upper:]' '[:lower:]')"
	case "$(uname -m)" in x86_64 | amd64) arch=x64 ;; aarch64 | arm64) arch=arm64 ;; *) arch="$(uname -m)" ;; esac
	cache="${XDG_CACHE_HOME:-$HOME/.cache}/weaver-ui/typescript-$typescript-$system-$arch"
	if [ ! -e "$cache/complete" ]; then
		rm -rf "$cache"
		pack "@typescript/typescript-$system-$arch@$typescript" "$cache"
		touch "$cache/complete"
	fi
	"$cache/lib/tsc" --noEmit -p ui
	;;
vendor)
	npm_needed
	made="$(mktemp -d)"
	trap 'rm -rf "$made"' EXIT
	rm -rf ui/vendor
	for line in "${libraries[@]}"; do
		read -ra words <<<"$line"
		name="${words[0]%@*}"
		pack "${words[0]}" "$made/$name"
		for file in "${words[@]:1}"; do
			mkdir -p "ui/vendor/$name/$(dirname "$file")"
			# Source maps are not kept.
			sed '/^\/\/# sourceMappingURL=/d' "$made/$name/$file" >"ui/vendor/$name/$file"
		done
	done
	;;
*)
	sed -n '2,6s/^# //p' "${BASH_SOURCE[0]##*/}" >&2
	exit 2
	;;
esac
