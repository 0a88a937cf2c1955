package clitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Three hundred files, a kill halfway, an error in the last task, one additional file: each file is converted once,
// except those that the kill interrupted.
func TestExampleSubtitles(t *testing.T) {
	t.Parallel()
	dir := example(t, "subtitles")
	path, log := filepath.Join(dir, "subtitles.yaml"), filepath.Join(dir, "log")
	good := strings.Replace(read(t, path), "      grep -q", "      echo \"$FILE\" >>log\n      grep -q", 1)
	write(t, path, strings.Replace(good, "grep 'vtt$'", "gerp 'vtt$'", 1))
	one := read(t, filepath.Join(dir, "01 Arrival.srt"))
	const files = 300
	for i := 3; i < files; i++ { // three exist already
		write(t, filepath.Join(dir, fmt.Sprintf("clip %d.srt", i)), one)
	}
	first := start(t, dir, "run", "subtitles.yaml")
	first.await(" of 302 tasks have ended (40 %)")
	first.signal(syscall.SIGKILL)
	first.end()

	second := start(t, dir, "run", "subtitles.yaml")
	if code := second.end(); code != 1 {
		t.Fatalf("exit code %d, want 1:\n%s", code, second.stdout.String())
	}
	second.says(" goes on, ", "index: failed")
	if n := strings.Count(read(t, log), "\n"); n < files || n > files+4 {
		t.Errorf("%d files were converted, want %d and at most the 4 again that were interrupted", n, files)
	}

	write(t, path, good)
	write(t, log, "")
	runExample(t, dir, "--update", "subtitles.yaml").says("runs 1 of 302 tasks", "index| 300 files")
	write(t, filepath.Join(dir, "new.srt"), one)
	runExample(t, dir, "--update", "subtitles.yaml").says("runs 2 of 303 tasks", "index| 301 files")
	if got := read(t, log); got != "new.srt\n" {
		t.Errorf("the updates converted %q, want the new file", got)
	}
	if got := read(t, filepath.Join(dir, "out", "03 Don't go.vtt")); !strings.HasPrefix(got, "WEBVTT\n\n1\n00:00:01.000 --> 00:00:03.500\n") {
		t.Errorf("converted: %q", got)
	}
}

// A release waits for a person, is killed during the deployment, and continues.
func TestExampleDeploy(t *testing.T) {
	t.Parallel()
	dir := example(t, "deploy")
	path := filepath.Join(dir, "deploy.yaml")
	good := read(t, path)
	mistaken := strings.Replace(good, `"{{.params.target}}/app"]`, `"{{.params.target}}/ap"], timeout: 1m`, 1)
	write(t, path, strings.Replace(mistaken, "mkdir -p \"$TARGET\"", "mkdir -p \"$TARGET\"; test -e slow || sleep 600", 1))
	args := []string{"run", "deploy.yaml", "-p", "version=v1.3.0", "-p", "target=live"}
	asked := start(t, dir, args...)
	if code := asked.end(); code != 1 {
		t.Fatalf("exit code %d, want 1:\n%s", code, asked.stdout.String())
	}
	asked.says("approve: waits for a person: Deploy v1.3.0 to live?", "then `weaver run deploy.yaml -p target=live -p version=v1.3.0` goes on")
	if _, err := os.Stat(filepath.Join(dir, "live")); err == nil {
		t.Fatal("it deploys before anybody approves")
	}
	if code := start(t, dir, "task", "unblock", "release/approve").end(); code != 0 {
		t.Fatalf("unblock: exit code %d", code)
	}
	killed := start(t, dir, args...)
	killed.await("deploy: started")
	killed.signal(syscall.SIGKILL)
	killed.end()

	write(t, filepath.Join(dir, "slow"), "")
	failed := start(t, dir, args...)
	if code := failed.end(); code != 1 {
		t.Fatalf("exit code %d, want 1:\n%s", code, failed.stdout.String())
	}
	failed.says("deploy| out/app-v1.3.0: OK", "smoke: failed", "on failure: succeeded")
	write(t, path, strings.Replace(good, "mkdir -p \"$TARGET\"", "mkdir -p \"$TARGET\"; test -e slow || sleep 600", 1))
	mended := start(t, dir, append([]string{"run", "--update"}, args[1:]...)...)
	if code := mended.end(); code != 0 {
		t.Fatalf("exit code %d, want 0:\n%s%s", code, mended.stdout.String(), mended.stderr.String())
	}
	mended.says("smoke runs: it changed", "smoke| program v1.3.0")
	if strings.Contains(mended.stdout.String(), "deploy: started") {
		t.Errorf("it deploys again:\n%s", mended.stdout.String())
	}
}

// A poll of a server that fails every third request is killed; it orders nothing twice.
func TestE2EExamplePoller(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	dir := example(t, "poller")
	exampleServer(t, dir, "poller.yaml", "127.0.0.1:9124", "127.0.0.1:0")

	first := start(t, dir, "run", "poller.yaml")
	first.await("order: succeeded")
	first.signal(syscall.SIGKILL)
	first.end()
	runExample(t, dir, "poller.yaml").says("goes on, 1 of its 5 tasks have ended", "export succeeded in ")
	if got := read(t, filepath.Join(dir, "out", "total.txt")); got != "120\n" {
		t.Errorf("the total is %q, want 120", got)
	}
	mendExample(t, dir, "poller.yaml", "awk -F,", "awkk -F,", "runs 1 of 5 tasks; 4 keep what was done before")
}
