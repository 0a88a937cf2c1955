package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/build"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// AccessKey and SecretKey are the credentials of a Gateway.
const (
	AccessKey = "weaver-test-access"
	SecretKey = "weaver-test-secret"
)

// BucketName is the name of the bucket of a Gateway.
const BucketName = "weaver"

// Gateway is versitygw, an S3 server in front of a folder. Its methods are not safe for concurrent use.
type Gateway struct {
	Addr string // host:port

	program string
	dir     string
	cmd     *exec.Cmd
	guard   *exec.Cmd     // kills the server when the test's program dies
	ended   chan struct{} // closed when the server has ended
	log     *logFile
}

// StartGateway starts a server with one empty bucket. It ends at the end of the test, and also when the program of the
// test dies.
func StartGateway(t testing.TB) *Gateway {
	t.Helper()
	program, err := findGateway()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "s3test")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{program: program, dir: dir}
	t.Cleanup(func() {
		g.Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the folder of the S3 server: %v", err)
		}
	})
	for _, folder := range []string{g.bucket(), g.meta()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // another program may take a port first
		if g.Addr, err = freePort(); err == nil {
			err = g.start()
		}
		if err == nil {
			return g
		}
	}
	t.Fatalf("start versitygw: %v", err)
	return nil
}

func findGateway() (string, error) {
	if path, err := exec.LookPath("versitygw"); err == nil {
		return path, nil
	}
	for _, folder := range filepath.SplitList(build.Default.GOPATH) {
		path := filepath.Join(folder, "bin", "versitygw")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no versitygw on this machine: install it with: make versitygw")
}

func (g *Gateway) bucket() string { return filepath.Join(g.dir, "data", BucketName) }
func (g *Gateway) meta() string   { return filepath.Join(g.dir, "meta") }

// Bucket returns the URL of a prefix of the bucket, "" for the whole bucket.
func (g *Gateway) Bucket(prefix string) string {
	return "s3://" + BucketName + "/" + prefix + "?region=us-east-1&path_style=true&endpoint=http://" + g.Addr
}

// Env returns the environment variables with its credentials.
func (g *Gateway) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey}
}

// Kill kills the server as kill -9 does. Connections to it break, and its objects stay.
func (g *Gateway) Kill() {
	if g.cmd == nil {
		return
	}
	_ = g.guard.Process.Kill()
	_ = g.guard.Wait() // "signal: killed"
	_ = g.cmd.Process.Kill()
	<-g.ended
	g.cmd = nil
}

// Restart starts the server again at the same address, with its objects. It must have been killed.
func (g *Gateway) Restart(t testing.TB) {
	t.Helper()
	if err := g.start(); err != nil {
		t.Fatalf("restart versitygw: %v", err)
	}
}

// start starts the server and returns when it answers.
func (g *Gateway) start() error {
	g.log = &logFile{}
	cmd := exec.Command(g.program, "--port", g.Addr, "--health", "/health", "--quiet", "posix", "--sidecar", g.meta(), filepath.Join(g.dir, "data"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, g.log, g.log
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	if err := cmd.Start(); err != nil {
		return err
	}
	// The guard's input ends with this program. Kill ends the guard before the server, so it never kills another process.
	guard := exec.Command("/bin/sh", "-c", `trap '' HUP INT TERM QUIT; cat >/dev/null; kill -9 "$0"; rm -rf "$1"`, strconv.Itoa(cmd.Process.Pid), g.dir)
	pipe, err := guard.StdinPipe()
	if err == nil {
		hold(pipe)
		err = guard.Start()
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return errors.Join(err, cmd.Wait())
	}
	g.cmd, g.guard, g.ended = cmd, guard, make(chan struct{})
	go func() {
		_ = cmd.Wait() // "signal: killed"
		close(g.ended)
	}()
	for limit := time.After(time.Minute); !g.answers(); {
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-g.ended:
			err = errors.New("it ended as it started")
		case <-limit:
			err = errors.New("it does not answer")
		}
		g.Kill()
		return fmt.Errorf("%w; its log:\n%s", err, g.log.text())
	}
	return nil
}

func (g *Gateway) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Addr+"/health", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(r)
	return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// logFile is the beginning of a server's output.
type logFile struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < 64<<10 {
		l.b.Write(p)
	}
	return len(p), nil
}

func (l *logFile) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var held struct {
	sync.Mutex
	pipes []io.Closer
}

func hold(pipe io.Closer) {
	held.Lock()
	defer held.Unlock()
	held.pipes = append(held.pipes, pipe)
}

// freePort returns an address below the ports that the system gives to clients.
func freePort() (string, error) {
	var errs error
	for range 50 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(12_000+rand.IntN(20_000)))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return addr, l.Close()
		}
		errs = errors.Join(errs, err)
	}
	return "", errs
}
