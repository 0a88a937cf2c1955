// Command release checks whether the commit that is checked out can be released as a version, and prints the commands
// that tag its modules. It changes nothing and needs no network. CONTRIBUTING.md has the steps around it.
//
//	go run ./internal/release v0.1.0
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ours is the path of the root module, below which all others are.
const ours = "github.com/goweaver/weaver"

// released has the folders of the modules that users require. All of them get the same version.
var released = []string{".", "otelweaver"}

// kept has the folders of modules that get no tag.
var kept = []string{"bench", "examples/build/hello", "internal/systemtest", "tools"}

// stale has texts of files that are wrong from the first release on.
var stale = map[string]string{"CHANGELOG.md": "Nothing is released yet", "README.md": "from the first release on; until then"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 || args[0] == "" {
		return errors.New("name the version, as in: make release VERSION=v0.1.0")
	}
	version := args[0]
	problems, err := check(".", version)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s cannot be released:\n  %s", version, strings.Join(problems, "\n  "))
	}
	commit, err := git(".", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	fmt.Printf("%s can be released. These commands do it, the last one for everybody:\n", version)
	for _, tag := range tags(version) {
		fmt.Printf("  git tag -a -m '%s' %s %s\n", tag, tag, commit)
	}
	fmt.Printf("  git push --atomic origin %s\n", strings.Join(tags(version), " "))
	return nil
}

// tags returns the tags of a version, in the form that the go command looks for: FOLDER/VERSION.
func tags(version string) []string {
	all := make([]string, len(released))
	for i, folder := range released {
		all[i] = path.Join(folder, version)
	}
	return all
}

// check returns what keeps the checkout in dir from being released.
func check(dir, version string) (problems []string, err error) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	parts, ok := parse(version)
	if !ok {
		return nil, fmt.Errorf("version %q: want the form v0.1.0 or v0.2.0-rc.1", version)
	}
	if parts[0] > 1 {
		complain("the import path of version %d ends in /v%d: change it in all modules first", parts[0], parts[0])
	}
	if changed, err := git(dir, "status", "--porcelain"); err != nil {
		return nil, err
	} else if changed != "" {
		complain("files differ from the commit, which is what is tagged: commit or remove them (git status)")
	}
	known, err := git(dir, "tag", "--list")
	if err != nil {
		return nil, err
	}
	for _, tag := range strings.Fields(known) {
		if slices.Contains(tags(version), tag) {
			complain("tag %s exists, and a version never changes: take the next one", tag)
		} else if other, ok := parse(tag); ok && slices.Compare(other[:], parts[:]) > 0 {
			complain("%s is released and newer", tag)
		}
	}
	found, err := modules(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		for _, text := range found[folder].problems(folder, version) {
			complain("%s", text)
		}
	}
	for _, folder := range slices.Concat(released, kept) {
		if _, ok := found[folder]; !ok {
			complain("there is no %s, which internal/release lists", path.Join(folder, "go.mod"))
		}
	}
	if text, err := changelog(dir, version); err != nil {
		return nil, err
	} else if text != "" {
		complain("%s", text)
	}
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), stale[name]) {
			complain("%s says %q: edit it", name, stale[name])
		}
	}
	return problems, nil
}

var versions = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// parse returns the three numbers of a version.
func parse(version string) (parts [3]int, ok bool) {
	m := versions.FindStringSubmatch(version)
	if m == nil {
		return parts, false
	}
	for i := range parts {
		var err error
		if parts[i], err = strconv.Atoi(m[i+1]); err != nil {
			return parts, false
		}
	}
	return parts, true
}

// module is a go.mod file as `go mod edit -json` prints it.
type module struct {
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Exclude []struct{ Path string }
}

// modules returns the modules of a checkout by their folders.
func modules(dir string) (map[string]*module, error) {
	files, err := git(dir, "ls-files", "--", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	found := make(map[string]*module)
	for _, file := range strings.Fields(files) {
		text, err := output(dir, "go", "mod", "edit", "-json", file)
		if err != nil {
			return nil, err
		}
		m := new(module)
		if err := json.Unmarshal([]byte(text), m); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found[path.Dir(file)] = m
	}
	return found, nil
}

// problems returns what is wrong with a module. The go command ignores replacements and exclusions of modules that it
// does not run in, so what users get is what is required.
func (m *module) problems(folder, version string) (problems []string) {
	file := path.Join(folder, "go.mod")
	if !slices.Contains(released, folder) && !slices.Contains(kept, folder) {
		return []string{file + " is new: add it to released or to kept in internal/release/release.go"}
	}
	for _, r := range m.Require {
		if isOurs(r.Path) && r.Version != version {
			problems = append(problems, fmt.Sprintf("%s requires %s %s: go mod edit -require=%[2]s@%[4]s %[1]s", file, r.Path, r.Version, version))
		}
	}
	if !slices.Contains(released, folder) {
		return problems
	}
	for _, r := range m.Replace {
		if !isOurs(r.Old.Path) || r.New.Version != "" {
			problems = append(problems, fmt.Sprintf("%s replaces %s, which does not reach users: require what they need", file, r.Old.Path))
		}
	}
	for _, r := range m.Exclude {
		problems = append(problems, fmt.Sprintf("%s excludes a version of %s, which does not reach users", file, r.Path))
	}
	return problems
}

func isOurs(module string) bool { return module == ours || strings.HasPrefix(module, ours+"/") }

// changelog returns what is wrong with CHANGELOG.md: the version needs a heading with a date, below an empty list of
// what is not released.
func changelog(dir, version string) (problem string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	want := "## [" + strings.TrimPrefix(version, "v") + "] - "
	unreleased := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch date, found := strings.CutPrefix(line, want); {
		case line == "## [Unreleased]":
			unreleased = true
		case found:
			if _, err := time.Parse(time.DateOnly, date); err != nil {
				return fmt.Sprintf("CHANGELOG.md: %q ends in no date: want %s2026-12-31", line, want), nil
			}
			return "", nil
		case strings.HasPrefix(line, "## "), unreleased && line != "":
			return fmt.Sprintf("CHANGELOG.md has no heading %s%s below an empty ## [Unreleased]", want, time.Now().Format(time.DateOnly)), nil
		}
	}
	return fmt.Sprintf("CHANGELOG.md has no heading %sDATE", want), nil
}

func git(dir string, args ...string) (string, error) { return output(dir, "git", args...) }

// output returns what a program prints.
func output(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return strings.TrimSpace(string(out)), nil
}
