package clitest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// example copies a folder of examples, so that a run leaves no files there.
func example(t *testing.T, name string) (dir string) {
	t.Helper()
	source, err := os.OpenRoot(filepath.Join("..", "..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, withoutLeftovers{source.FS()}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// withoutLeftovers hides files that earlier manual runs left in an example.
type withoutLeftovers struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (f withoutLeftovers) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	var kept []fs.DirEntry
	for _, e := range entries {
		switch e.Name() {
		case "work", "out", "backups", "restored", "staging", "live":
		default:
			kept = append(kept, e)
		}
	}
	return kept, err
}

func runExample(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := start(t, dir, append([]string{"run"}, args...)...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, p.stdout.String(), p.stderr.String())
	}
	return p
}

// mendExample puts a typo into an example's file, runs it, fixes the typo, and runs the rest. kept is the expected
// line about tasks that are not repeated.
func mendExample(t *testing.T, dir, file, good, typo, kept string) {
	t.Helper()
	path := filepath.Join(dir, file)
	text := read(t, path)
	if strings.Count(text, good) != 1 {
		t.Fatalf("%s has %q %d times, want once", file, good, strings.Count(text, good))
	}
	write(t, path, strings.Replace(text, good, typo, 1))
	p := start(t, dir, "run", "--update", file)
	if code := p.end(); code != 1 {
		t.Fatalf("with %q: exit code %d, want 1:\n%s", typo, code, p.stdout.String())
	}
	write(t, path, text)
	runExample(t, dir, "--update", file).says(kept)
}

// exampleServer builds the program of an example, starts it on a free port, and writes the port into the pipeline.
func exampleServer(t *testing.T, dir, file, port string, args ...string) {
	t.Helper()
	// Outside of this module the program needs its own module.
	write(t, filepath.Join(dir, "go.mod"), "module example.com/server\n\ngo 1.26\n")
	program := filepath.Join(t.TempDir(), "server")
	if code := startProgram(t, dir, "go", "build", "-o", program, ".").end(); code != 0 {
		t.Fatalf("go build: exit code %d", code)
	}
	_, rest, _ := strings.Cut(startProgram(t, dir, program, args...).await("serving http://"), "http://")
	address, _, _ := strings.Cut(rest, "/")
	path := filepath.Join(dir, file)
	write(t, path, strings.ReplaceAll(read(t, path), port, address))
}

func TestE2EExampleNightly(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	dir := example(t, "nightly")
	exampleServer(t, dir, "nightly.yaml", "127.0.0.1:9123", "serve", "127.0.0.1:0")

	// Killed during a fetch, and run again.
	first := start(t, dir, "run", "nightly.yaml")
	first.await("prepare: succeeded")
	first.signal(syscall.SIGKILL)
	first.end()
	second := runExample(t, dir, "nightly.yaml")
	second.says("goes on, 1 of its 7 tasks have ended", "nightly-report succeeded in ")
	if got, want := read(t, filepath.Join(dir, "work", "report.txt")), "Ada           12.50\nGrace        120.00\n"; got != want {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
	mendExample(t, dir, "nightly.yaml", "/hook", "/hok", "runs 1 of 7 tasks; 6 keep what was done before")
}

func TestE2EExampleBuild(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	dir := example(t, "build")
	// Three of its four targets would compile the whole standard library.
	path := filepath.Join(dir, "build.yaml")
	text := read(t, path)
	for _, other := range []string{"GOOS: darwin, GOARCH: arm64", "GOOS: windows, GOARCH: amd64", "GOOS: linux, GOARCH: arm64"} {
		if !strings.Contains(text, other) {
			t.Fatalf("the example has no target %s", other)
		}
		text = strings.ReplaceAll(text, other, "GOOS: linux, GOARCH: amd64")
	}
	write(t, path, text)
	first := start(t, dir, "run", "build.yaml")
	first.await("vet: succeeded")
	first.signal(syscall.SIGKILL)
	first.end()
	p := runExample(t, dir, "build.yaml")
	p.says("goes on, ", "build-and-test succeeded in ", "8 tasks.", "release| ")

	// A failing test is fixed.
	test := filepath.Join(dir, "hello", "main_test.go")
	good := read(t, test)
	write(t, test, strings.ReplaceAll(good, "hello, Ada", "goodbye, Ada"))
	p = start(t, dir, "run", "build.yaml")
	if code := p.end(); code != 1 {
		t.Fatalf("exit code %d, want 1:\n%s", code, p.stdout.String())
	}
	p.says(`greet says "hello, Ada"`, "build-and-test failed after ", "1 of 8 tasks failed, 1 was cancelled")
	write(t, test, good)
	mendExample(t, dir, "build.yaml", "tar -cf", "tarr -cf", "runs 1 of 8 tasks; 7 keep what was done before")
}

func TestExampleBackup(t *testing.T) {
	t.Parallel()
	dir := example(t, "backup")
	for range 5 {
		runExample(t, dir, "backup.yaml").says("restore| identical: 2 files", "backup succeeded in ")
	}
	archives, err := filepath.Glob(filepath.Join(dir, "backups", "*.tar"))
	if err != nil || len(archives) != 3 {
		t.Errorf("%d archives are left (error %v), want the last 3", len(archives), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "restored")); err == nil {
		t.Error("the restored copy is left")
	}

	mendExample(t, dir, "backup.yaml", "ln -f new $", "lnn -f new $", "runs 2 of 6 tasks; 4 keep what was done before")
}

func TestExampleBackupKilled(t *testing.T) {
	t.Parallel()
	dir := example(t, "backup")
	path := filepath.Join(dir, "backup.yaml")
	good := read(t, path)
	write(t, path, strings.Replace(good, "rm -rf restored &&", "sleep 600 &&", 1))
	first := start(t, dir, "run", "backup.yaml")
	first.await("restore: started")
	first.signal(syscall.SIGKILL)
	first.end()
	write(t, path, good)
	second := runExample(t, dir, "--update", "backup.yaml")
	second.says("restore runs: it changed", "restore| identical: 2 files")
	if strings.Contains(second.stdout.String(), "archive: started") {
		t.Errorf("it archives again:\n%s", second.stdout.String())
	}
}

func TestExampleBackupReportsAFailure(t *testing.T) {
	t.Parallel()
	dir := example(t, "backup")
	path := filepath.Join(dir, "backup.yaml")
	good := read(t, path)
	write(t, path, strings.Replace(good, "SOURCE: data", "SOURCE: nowhere", 1))
	p := start(t, dir, "run", "backup.yaml")
	if code := p.end(); code != 1 {
		t.Fatalf("exit code %d, want 1:\n%s", code, p.stdout.String())
	}
	p.says("archive: failed", "report: succeeded", "backup failed after ")
	if log := read(t, filepath.Join(dir, "backups", "failed.log")); !strings.Contains(log, "no backup, job ") {
		t.Errorf("the report is %q", log)
	}
	write(t, path, good)
	runExample(t, dir, "--update", "backup.yaml").says("report: cancelled: it was not needed", "backup succeeded in ")
}

func TestExampleCrontab(t *testing.T) {
	t.Parallel()
	dir := example(t, "crontab")
	runExample(t, dir, "backup.yaml").says("it has a schedule, 0 3 * * * in Europe/Berlin", "backup succeeded in ")
	submit := start(t, dir, "submit", "backup.yaml")
	if code := submit.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, submit.stderr.String())
	}
	submit.says("Schedule backup (0 3 * * * in Europe/Berlin) stored. It fires next at ")
}
