package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store/sqlite"
)

// Some tests need a second process: this test binary, started again in one of the roles below.
const (
	childRole = "WEAVER_TEST_ROLE"
	childFile = "WEAVER_TEST_FILE"
)

// roles are the programs of another process. Each reads commands from in, one on a line, and
// must return when in ends.
var roles = map[string]func(ctx context.Context, path string, in *bufio.Scanner, out io.Writer) error{
	"migrate": childMigrates,
	"enqueue": childEnqueues,
	"hold":    childHolds,
	"work":    childWorks,
	"storm":   childStorms,
}

func TestMain(m *testing.M) {
	name := os.Getenv(childRole)
	if name == "" {
		os.Exit(m.Run())
	}
	role := roles[name]
	if role == nil {
		fmt.Fprintf(os.Stderr, "no role %q\n", name)
		os.Exit(2)
	}
	if err := role(context.Background(), os.Getenv(childFile), bufio.NewScanner(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// opened runs fn with a database opened by another process.
func opened(ctx context.Context, path string, fn func(db *sqlite.DB) error) error {
	db, err := sqlite.Open(ctx, path, sqlite.Synchronous(sqlite.SyncOff))
	if err != nil {
		return err
	}
	err = fn(db)
	if cerr := db.Close(); err == nil {
		err = cerr
	}
	return err
}

// child is another process.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
	ended  bool
}

// startChild starts another process in a role. It ends with the test.
func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	c := &child{t: t, cmd: exec.CommandContext(ctx, self)}
	c.cmd.Env = append(os.Environ(), childRole+"="+role, childFile+"="+path)
	c.cmd.Stderr = &c.stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !c.ended {
			c.kill()
		}
	})
	return c
}

// send sends a command.
func (c *child) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("the other process does not read: %v\n%s", err, c.stderr.String())
	}
}

// readLine returns the next line that the process wrote.
func (c *child) readLine() string {
	c.t.Helper()
	line, ok := c.next()
	if !ok {
		_ = c.cmd.Wait() // ProcessState has the reason of its end
		c.ended = true
		c.t.Fatalf("the other process ended: %v\n%s", c.cmd.ProcessState, c.stderr.String())
	}
	return line
}

// next returns the next whole line, or false when the process has ended.
func (c *child) next() (string, bool) {
	line, err := c.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err == nil
}

// rest returns all remaining whole lines.
func (c *child) rest() (lines []string) {
	for {
		line, ok := c.next()
		if !ok {
			return lines
		}
		lines = append(lines, line)
	}
}

// kill ends the process with SIGKILL, or the system's equivalent, and waits for its end.
func (c *child) kill() {
	c.t.Helper()
	c.ended = true
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Errorf("kill: %v", err)
	}
	_, _ = c.cmd.Process.Wait() // the pipe stays open for its output
}

// end lets the process end by itself.
func (c *child) end() {
	c.t.Helper()
	c.ended = true
	_ = c.in.Close() // the process may have ended already
	lines := c.rest()
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the other process: %v\n%s\n%s", err, strings.Join(lines, "\n"), c.stderr.String())
	}
}
