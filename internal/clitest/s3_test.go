package clitest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/s3test"
)

const (
	s3Key    = "key-of-test"
	s3Secret = "secret-of-test"
)

// withS3 starts an S3 server and sets credentials for it.
func withS3(t *testing.T) (s *s3test.Memory, dir string) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3Secret)
	dir = t.TempDir()
	err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(`name: p
tasks:
  make: {run: "yes line | head -c 100000 >big.txt", artifacts: [big.txt]}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return s3test.NewMemory(t), dir
}

// endsWith runs the command to its end.
func endsWith(t *testing.T, code int, dir string, args ...string) *process {
	t.Helper()
	p := start(t, dir, args...)
	if got := p.end(); got != code {
		t.Errorf("%q: exit code %d, want %d:\n%s%s", args, got, code, p.stdout.String(), p.stderr.String())
	}
	if all := p.stdout.String() + p.stderr.String(); strings.Contains(all, s3Key) || strings.Contains(all, s3Secret) {
		t.Errorf("%q prints a credential:\n%s", args, all)
	}
	return p
}

func TestS3(t *testing.T) {
	s, dir := withS3(t)
	run := func(code int, args ...string) *process {
		t.Helper()
		return endsWith(t, code, dir, append([]string{"--bucket", s.Bucket()}, args...)...)
	}
	run(0, "run", "p.yaml")
	run(0, "artifact", "get", "p/make/big.txt", "--to", "got.txt").says("97.7 KiB")
	if got, err := os.ReadFile(filepath.Join(dir, "got.txt")); err != nil || string(got) != strings.Repeat("line\n", 20_000) {
		t.Errorf("got.txt has %d bytes, %v", len(got), err)
	}
	run(0, "doctor", "--deep").says("Bucket s3://bucket/pre: all bytes of 1 blob (97.7 KiB) are there and unchanged.")
	run(0, "backup", "copy.db").says("in the bucket s3://bucket/pre, are not in it: copy its objects now")
	run(0, "artifact", "gc").says("0 blobs deleted")
	other := strings.Replace(s.Bucket(), "/pre?", "/other?", 1)
	endsWith(t, 2, dir, "--bucket", other, "submit", "weaver.exec.run.v1", `{"shell": "true"}`).says("the blobs of this namespace are in the bucket", "accept")
	endsWith(t, 0, dir, "--bucket", other, "artifact", "accept-bucket").says("s3://bucket/other at ")
	run(0, "artifact", "accept-bucket")

	// The server goes away.
	server := start(t, dir, "--bucket", s.Bucket(), "serve", "--addr", "127.0.0.1:0", "--roles", "api,worker", "--handlers", "builtin")
	url := regexp.MustCompile(`http://\S+`).FindString(server.await("serving"))
	if status, body := request(t, url+"readyz", ""); status != http.StatusOK || !strings.Contains(body, `{"name":"bucket","status":"ok"}`) {
		t.Errorf("readyz: %d %s", status, body)
	}
	s.Before(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	run(1, "doctor").says("The bucket cannot be used: ", "the server cannot be reached")
	run(0, "submit", "weaver.exec.run.v1", `{"shell": "echo without the bucket"}`).says("warning: large values and artifacts cannot be stored or read for now")
	server.await("| without the bucket")
	late := start(t, dir, "--bucket", s.Bucket(), "worker", "--handlers", "builtin", "--health", "127.0.0.1:0")
	url = regexp.MustCompile(`http://\S+`).FindString(late.await("health at"))
	if status, body := request(t, url, ""); status != http.StatusOK || !strings.Contains(body, `{"name":"bucket","status":"degraded","detail":"the bucket cannot be used`) {
		t.Errorf("readyz: %d %s", status, body)
	}
	for _, p := range []*process{late, server} {
		p.signal(syscall.SIGTERM)
		if code := p.end(); code != 0 {
			t.Errorf("exit code %d:\n%s", code, p.stderr.String())
		}
	}
	late.says("tasks with large values and artifacts wait for the bucket")
	s.Before(nil)
	run(0, "doctor", "--deep")
}

// A verb that needs the bucket fails if the bucket is missing or denies access, and says what to do.
func TestS3_Wrong(t *testing.T) {
	s, dir := withS3(t)
	answer := func(code string) {
		s.Before(func(w http.ResponseWriter, _ *http.Request) bool { s3test.Fail(w, 403, code); return true })
	}
	for code, says := range map[string]string{
		"NoSuchBucket": "there is no such bucket: create it", "AccessDenied": "allow s3:ListBucket",
		"ExpiredToken": "the credentials have expired: get new ones", "InvalidAccessKeyId": "the credentials are wrong: correct AWS_ACCESS_KEY_ID",
	} {
		answer(code)
		for _, verb := range [][]string{{"worker", "--until-idle"}, {"serve"}, {"run", "p.yaml"}} {
			endsWith(t, 2, dir, append([]string{"--bucket", s.Bucket()}, verb...)...).says("--bucket (WEAVER_BUCKET)", says)
		}
	}
	endsWith(t, 0, dir, "--bucket", s.Bucket(), "task", "ls") // reads no blob
	endsWith(t, 1, dir, "--bucket", s.Bucket(), "doctor").says("The bucket cannot be used: ")
}
