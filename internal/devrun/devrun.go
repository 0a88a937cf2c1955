// Package devrun runs a program during development: it starts the program, prints its output, and restarts it when Go
// files of its module change.
//
// The old program keeps running during the build of the new one. If the build fails the old one stays. Otherwise it
// gets SIGTERM and time to drain, and the new one starts after it has ended. A failed program restarts by itself; the
// pause doubles with each failure soon after its start. When Run returns all processes of the program have ended,
// except those that created their own session. Embedded files and files of other modules (go.work, replace) are not
// watched.
package devrun

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/group"
)

// Config configures a Runner.
type Config struct {
	Command []string // the program and its arguments, or go run …
	Dir     string   // working directory; default the current folder
	Env     []string // environment of the program and its builds, as NAME=VALUE; default that of this process
	Output  *Output  // receives lines of the program ("app"), of builds ("build") and of this package ("dev")

	DrainTimeout time.Duration // time between SIGTERM and SIGKILL; default 10 s
	Poll         time.Duration // interval between scans of the files; default 500 ms
}

const (
	sourceApp   = "app"
	sourceBuild = "build"
	sourceDev   = "dev"

	defaultDrain = 10 * time.Second
	defaultPoll  = 500 * time.Millisecond
	buildGrace   = time.Second // grace period for a build whose result is no longer wanted
)

// A program that fails within soon of its start counts as failing at once. After the second such failure in a row the
// restart waits, even if files change: the program may be the one that changes them.
const (
	soon      = 2 * time.Second
	firstWait = 2 * time.Second // from start to start after the second failure; doubles from then on
	maxWait   = 16 * time.Second
)

var (
	errStopping = errors.New("the program was asked to end")
	errReplaced = errors.New("the program is replaced")
)

// Runner runs a program. Use New.
type Runner struct {
	config Config
	plan   plan
	now    chan struct{} // closed by StopNow
	stop   sync.Once
}

// New checks a Config and returns its Runner. It starts no process.
func New(c Config) (*Runner, error) {
	if c.Output == nil {
		c.Output = NewOutput(io.Discard)
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Env = withLast(c.Env)
	c.DrainTimeout, c.Poll = cmp.Or(c.DrainTimeout, defaultDrain), cmp.Or(c.Poll, defaultPoll)
	p, err := newPlan(c.Dir, c.Command)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the folder %q does not exist", p.dir)
	}
	if _, err := find(p.dir, c.Command[0]); err != nil {
		return nil, err
	}
	return &Runner{config: c, plan: p, now: make(chan struct{})}, nil
}

// StopNow kills the program instead of waiting until it has drained. Call it on the second interrupt; the first one
// ends the context of Run.
func (r *Runner) StopNow() { r.stop.Do(func() { close(r.now) }) }

// Run runs the program until ctx ends and then lets it drain. Call it once. A failure of the program is printed and
// is not an error of Run.
func (r *Runner) Run(ctx context.Context) (err error) {
	temp, remove, err := r.makeBuilds()
	if err != nil {
		return fmt.Errorf("make a folder for builds: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	root, deep := r.plan.root()
	w := &watcher{root: root, deep: deep, poll: r.config.Poll}
	w.seen = w.scan() // before the first build, so that changes during it are noticed
	g := group.New(context.WithoutCancel(ctx))
	changes := make(chan []string)
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	g.Go("watch", func(context.Context) error {
		if err := w.run(watching, changes); watching.Err() == nil {
			return err
		}
		return nil
	})
	t := &turn{Runner: r, g: g, temp: temp}
	err = t.loop(ctx, changes)
	stopWatching()
	return errors.Join(err, g.Wait())
}

// turn is one call of Run. Only the goroutine of Run uses its fields.
type turn struct {
	*Runner
	g    *group.Group
	temp string

	current *program // nil: no program is running
	argv    []string // of the current or last program
	sum     [sha256.Size]byte
	builds  int
	last    time.Time // start of the last program
	brief   int       // consecutive programs that failed soon after their start
}

func (t *turn) say(format string, args ...any) {
	t.config.Output.Print(sourceDev, fmt.Sprintf(format, args...))
}

func (t *turn) loop(ctx context.Context, changes <-chan []string) error {
	t.restart(ctx, "")
	var again <-chan time.Time // restart timer after a failure
	for {
		var ended chan struct{}
		if t.current != nil {
			ended = t.current.done
		}
		select {
		case <-ctx.Done():
			t.end(errStopping)
			return nil
		case <-t.g.Context().Done():
			t.end(errStopping)
			return nil // Wait returns the failure
		case <-ended:
			if !t.ended() {
				d := t.backoff()
				again = time.After(d)
				t.say("it starts again in %s, or when a .go file changes", d)
				continue
			}
			t.say("it starts again when a .go file changes")
		case <-again:
			again = nil
			t.start(t.argv)
		case files := <-changes:
			again = nil
			t.restart(ctx, changed(files))
		}
	}
}

// restart builds the program and replaces the current one. because is the reason for the message, "" on the first
// start.
func (t *turn) restart(ctx context.Context, because string) {
	argv, sum, ok := t.plan.argv, [sha256.Size]byte{}, true
	if t.plan.build != nil {
		t.say("%s", strings.TrimPrefix(because+"; building "+t.plan.what, "; "))
		argv, sum, ok = t.build(ctx)
	} else if because != "" {
		t.say("%s", because)
	}
	if t.current != nil {
		select {
		case <-t.current.done: // ended during the build
			t.ended()
		default:
		}
	}
	switch {
	case ctx.Err() != nil:
		return
	case !ok && t.current != nil:
		t.say("the build failed: the running program continues")
		return
	case !ok:
		t.say("the build failed: it is tried again when a .go file changes")
		return
	case t.plan.build != nil && t.current != nil && sum == t.sum:
		t.drop(argv)
		t.say("the program is the same as before: it goes on")
		return
	}
	if t.current != nil {
		t.say("restarting: the program may end its work within %s", t.config.DrainTimeout)
		t.end(errReplaced)
	}
	if t.wait(ctx) != nil {
		return
	}
	t.drop(t.argv)
	t.sum = sum
	t.start(argv)
}

// backoff returns the pause before a failed program restarts by itself.
func (t *turn) backoff() time.Duration {
	return min(time.Second<<min(max(t.brief-1, 0), 10), maxWait)
}

// start starts the program. The caller makes sure that no program is running.
func (t *turn) start(argv []string) {
	t.argv, t.last = argv, time.Now()
	p, err := start(t.g, t.config.Output, sourceApp, t.plan.dir, t.config.Env, argv)
	if err != nil {
		t.say("%v; it is tried again when a .go file changes", err)
		return
	}
	t.current = p
	t.say("started as process %d", p.process.Pid())
}

// wait waits until a program may be started again.
func (t *turn) wait(ctx context.Context) error {
	if t.brief < 2 {
		return ctx.Err()
	}
	rest := time.Until(t.last.Add(min(firstWait<<min(t.brief-2, 10), maxWait)))
	if rest <= 0 {
		return ctx.Err()
	}
	t.say("it failed at once %d times in a row: it starts in %s", t.brief, rest.Round(100*time.Millisecond))
	return pause(ctx, rest)
}

// build compiles the program and returns the command that runs the binary, and the hash of the binary.
func (t *turn) build(ctx context.Context) (argv []string, sum [sha256.Size]byte, ok bool) {
	t.builds++
	folder := filepath.Join(t.temp, fmt.Sprint(t.builds))
	scratch := filepath.Join(t.temp, "go")
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.MkdirAll(scratch, 0o700)); err != nil {
		t.say("%v", err)
		return nil, sum, false
	}
	// With a folder as output, go build fails for a package that is not a program. Files left by an interrupted build
	// are removed with the folder.
	args := append([]string{t.plan.gobin, "build", "-o", folder + string(filepath.Separator)}, t.plan.build[1:]...)
	env := withLast(t.config.Env, "GOTMPDIR="+scratch)
	p, err := start(t.g, t.config.Output, sourceBuild, t.plan.dir, env, args)
	if err != nil {
		t.say("%v", err)
		return nil, sum, false
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.process.End(errStopping, buildGrace)
		<-p.done
	}
	if !p.succeeded() {
		return nil, sum, false
	}
	binary, sum, err := only(folder)
	if err != nil {
		t.say("%v", err)
		return nil, sum, false
	}
	return append([]string{binary}, t.plan.argv[1:]...), sum, true
}

// only returns the single file of a folder and the hash of its contents.
func only(folder string) (path string, sum [sha256.Size]byte, err error) {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) != 1 {
		err = fmt.Errorf("the build made %d programs: name one package", len(entries))
	}
	if err != nil {
		return "", sum, err
	}
	path = filepath.Join(folder, entries[0].Name())
	f, err := os.Open(path)
	if err != nil {
		return "", sum, err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", sum, err
	}
	return path, [sha256.Size]byte(hash.Sum(nil)), nil
}

// drop removes a binary that is no longer used. A binary that cannot be removed now goes with the folder.
func (t *turn) drop(argv []string) {
	if t.plan.build != nil && len(argv) > 0 {
		_ = os.RemoveAll(filepath.Dir(argv[0]))
	}
}

// end asks the current program to end and waits until it is gone.
func (t *turn) end(why error) {
	p := t.current
	if p == nil {
		return
	}
	t.current = nil
	asked := time.Now()
	p.process.End(why, t.config.DrainTimeout)
	select {
	case <-p.done:
	case <-t.now:
		p.process.End(why, 0)
		<-p.done
	}
	switch {
	case p.process.Stopped() == nil:
		t.say("the program %s", p.how()) // it ended before it was asked
	case time.Since(asked) >= t.config.DrainTimeout:
		t.say("the program did not end within %s and was killed", t.config.DrainTimeout)
	default:
		t.brief = 0
		t.say("the program %s", p.how())
	}
}

// ended records that the current program ended by itself, and reports whether it succeeded.
func (t *turn) ended() bool {
	p := t.current
	t.current = nil
	if p.succeeded() || p.took >= soon {
		t.brief = 0
	} else {
		t.brief++
	}
	t.say("the program %s after %s", p.how(), p.took.Round(time.Millisecond))
	return p.succeeded()
}

// changed names the changed files for a message.
func changed(files []string) string {
	if len(files) > maxListed {
		return fmt.Sprintf("%s and %d more files changed", strings.Join(files[:maxListed], ", "), len(files)-maxListed)
	}
	return strings.Join(files, ", ") + " changed"
}

// withLast returns an environment that keeps only the last value of each variable: programs would use the first.
func withLast(env []string, more ...string) []string {
	var list []string
	seen := make(map[string]bool)
	for _, pair := range slices.Backward(slices.Concat(env, more)) {
		name, _, _ := strings.Cut(pair, "=")
		if name == "" || !seen[name] { // Windows has variables without a name
			seen[name] = true
			list = append(list, pair)
		}
	}
	slices.Reverse(list)
	return list
}

// lookup returns the value of a variable, or "" if it is not set.
func lookup(env []string, name string) string {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			return v
		}
	}
	return ""
}
