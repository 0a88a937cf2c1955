package devrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plan describes how to build and run a command.
type plan struct {
	dir    string   // working directory
	argv   []string // command of the program; with a build the binary's path becomes the first element
	build  []string // arguments of go build without -o; nil: no build
	gobin  string   // the go command as the user wrote it
	what   string   // name of the built program, for messages
	folder string   // folder of the program's sources
}

// newPlan parses a command. It turns `go run` into a build and a run of the binary, because the go command ends on
// SIGTERM without waiting for its program.
func newPlan(dir string, command []string) (plan, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return plan{}, fmt.Errorf("the folder %q: %w", dir, err)
	}
	if len(command) == 0 || command[0] == "" {
		return plan{}, errors.New("no program to run: write it after --, for example -- go run ./cmd/app")
	}
	asIs := plan{dir: dir, argv: command, folder: dir}
	if name := strings.TrimSuffix(filepath.Base(command[0]), ".exe"); name != "go" || len(command) < 2 || command[1] != "run" {
		return asIs, nil
	}
	flags, folder, rest, ok := buildFlags(dir, command[2:])
	if !ok {
		return asIs, nil
	}
	packages := 0
	for packages < len(rest) && strings.HasSuffix(rest[packages], ".go") {
		packages++
	}
	switch {
	case len(rest) == 0:
		return plan{}, fmt.Errorf("%s names no package: add it, for example go run ./cmd/app", strings.Join(command, " "))
	case packages == 0 && strings.Contains(rest[0], "@"):
		return asIs, nil // a fixed version of another module
	case packages == 0:
		packages = 1
	}
	p := plan{
		dir: folder, folder: folder,
		argv:  append([]string{""}, rest[packages:]...),
		build: append(append([]string{"build", "-buildvcs=false"}, flags...), rest[:packages]...),
		gobin: command[0],
		what:  strings.Join(rest[:packages], " "),
	}
	if local := rest[0]; packages == 1 && (strings.HasPrefix(local, ".") || filepath.IsAbs(local)) || strings.HasSuffix(local, ".go") {
		if !filepath.IsAbs(local) {
			local = filepath.Join(folder, local)
		}
		if strings.HasSuffix(local, ".go") {
			local = filepath.Dir(local)
		}
		p.folder = local
	}
	return p, nil
}

// alone lists the flags of go build that take no separate value.
var alone = []string{"a", "race", "msan", "asan", "cover", "v", "work", "x", "linkshared", "modcacherw", "trimpath", "buildvcs", "json"}

// buildFlags separates the flags of go run and follows -C. ok is false for flags that go build lacks, or that print
// instead of running.
func buildFlags(dir string, args []string) (flags []string, folder string, rest []string, ok bool) {
	folder = dir
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		name, value, joined := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		n := 1
		if !joined && !slices.Contains(alone, name) {
			if len(args) < 2 {
				return nil, "", nil, false
			}
			value, n = args[1], 2
		}
		switch name {
		case "exec", "n", "o", "":
			return nil, "", nil, false
		case "C":
			if !filepath.IsAbs(value) {
				value = filepath.Join(folder, value)
			}
			folder = value
		default:
			flags = append(flags, args[:n]...)
		}
		args = args[n:]
	}
	return flags, folder, args, true
}

// root returns the folder to watch: the module that contains the program's folder. Without a module it is the
// program's folder alone, without subfolders (deep is false), because it may be a home directory.
func (p *plan) root() (folder string, deep bool) {
	start := p.folder
	if real, err := filepath.EvalSymlinks(start); err == nil {
		start = real
	}
	for at := start; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, "go.mod")); err == nil && info.Mode().IsRegular() {
			return at, true
		}
		if filepath.Dir(at) == at {
			return start, false
		}
	}
}

// find returns the file of a program.
func find(dir, name string) (string, error) {
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program %q cannot be run: %w", name, err)
	}
	return path, nil
}
