package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// minVersion is the oldest major version that Weaver works with.
const minVersion = 13

// binVariable is the environment variable with the folder of the programs, for a test of
// another version.
const binVariable = "WEAVER_POSTGRES_BIN"

// install is the instruction for a missing program.
const install = "make services installs what the tests need (Debian: sudo apt-get install -y --no-install-recommends postgresql pgbouncer)"

// installation is PostgreSQL on this machine.
type installation struct {
	bin   string // the folder of its programs
	major int    // its major version
}

// find returns the newest PostgreSQL on this machine, among the places that
// scripts/services.sh checks too.
var find = sync.OnceValues(func() (installation, error) {
	if dir := os.Getenv(binVariable); dir != "" {
		major, err := versionIn(dir)
		if err != nil {
			return installation{}, fmt.Errorf("%s=%s: %w", binVariable, dir, err)
		}
		return installation{bin: dir, major: major}, nil
	}
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	var all []installation
	var errs []error
	for _, dir := range dirs {
		if major, err := versionIn(dir); err == nil {
			all = append(all, installation{bin: dir, major: major})
		} else {
			errs = append(errs, err)
		}
	}
	if len(all) == 0 {
		return installation{}, errors.Join(append(errs, fmt.Errorf("no PostgreSQL %d or later on this machine: %s", minVersion, install))...)
	}
	return slices.MaxFunc(all, func(a, b installation) int { return cmp.Compare(a.major, b.major) }), nil
})

var versionText = regexp.MustCompile(`\d+`)

// versionIn returns the major version of the server program in a folder.
func versionIn(dir string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range []string{"initdb", "pg_basebackup"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return 0, err
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", filepath.Join(dir, "postgres"), err)
	}
	major, err := strconv.Atoi(versionText.FindString(string(out)))
	if err != nil || major < minVersion {
		return 0, fmt.Errorf("%s is %q: the tests need PostgreSQL %d or later", filepath.Join(dir, "postgres"), strings.TrimSpace(string(out)), minVersion)
	}
	return major, nil
}
