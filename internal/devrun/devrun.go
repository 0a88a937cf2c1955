// Package devrun runs a program while it is being worked on: it starts it, prints what it
// writes, and restarts it when the Go files of its module change.
//
// The old program goes on while the new one is built. If the build fails it stays, else
// it gets SIGTERM and the time to drain, and the new one starts when it is gone. A program that
// fails starts again by itself, after a pause that doubles with each failure soon after its
// start. Nothing
// of a program is left when Run returns, except what made a session of its own. Files
// that are embedded, and those of other modules (go.work, replace), are not watched.
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

// Config says what to run.
type Config struct {
	Command []string // the program and its arguments, or go run …
	Dir     string   // in which it runs; default the current folder
	Env     []string // of the program and of its builds, as NAME=VALUE; default that of this process
	Output  *Output  // for the program's lines ("app"), those of builds ("build") and of this package ("dev")

	DrainTimeout time.Duration // how long a program may go on after SIGTERM; default 10 s
	Poll         time.Duration // how often files are looked at; default 500 ms
}

const (
	sourceApp   = "app"
	sourceBuild = "build"
	sourceDev   = "dev"

	defaultDrain = 10 * time.Second
	defaultPoll  = 500 * time.Millisecond
	buildGrace   = time.Second // for a build whose result is no longer wanted
)

// A program that ends by itself so soon is not started again at once, however often
// files change: it may be the one that changes them.
const (
	soon      = 2 * time.Second
	firstWait = 2 * time.Second // from start to start, after the second such end; then doubled
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

// New checks a Config. It starts nothing.
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

// StopNow kills the program instead of waiting until it has drained. It is for the second
// interrupt; the end of Run's context is the first.
func (r *Runner) StopNow() { r.stop.Do(func() { close(r.now) }) }

// Run runs the program until ctx ends, then lets it drain. It is to be called once. That
// the program fails is printed and no error.
func (r *Runner) Run(ctx context.Context) (err error) {
	temp, remove, err := r.makeBuilds()
	if err != nil {
		return fmt.Errorf("make a folder for builds: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	root, deep := r.plan.root()
	w := &watcher{root: root, deep: deep, poll: r.config.Poll}
	w.seen = w.scan() // before the first build: what changes during it is noticed
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

// turn is one call of Run. Its fields belong to the goroutine of Run.
type turn struct {
	*Runner
	g    *group.Group
	temp string

	current *program // nil: none runs
	argv    []string // of the current program, or of the last one
	sum     [sha256.Size]byte
	builds  int
	last    time.Time // the start of the last program
	brief   int       // programs in a row that failed soon after their start
}

func (t *turn) say(format string, args ...any) {
	t.config.Output.Print(sourceDev, fmt.Sprintf(format, args...))
}

func (t *turn) loop(ctx context.Context, changes <-chan []string) error {
	t.restart(ctx, "")
	var again <-chan time.Time // of a program that failed
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

// restart builds the program and starts it in place of the current one. Because is why;
// "" at the beginning.
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
		case <-t.current.done: // during the build
			t.ended()
		default:
		}
	}
	switch {
	case ctx.Err() != nil:
		return
	case !ok && t.current != nil:
		t.say("the build failed: the program that runs goes on as it is")
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

// backoff is the pause before a program that failed starts again by itself.
func (t *turn) backoff() time.Duration {
	return min(time.Second<<min(max(t.brief-1, 0), 10), maxWait)
}

// start starts the program; none runs.
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

// wait returns when a program may be started again.
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

// build compiles the program and returns how the binary is run, and what identifies it.
func (t *turn) build(ctx context.Context) (argv []string, sum [sha256.Size]byte, ok bool) {
	t.builds++
	folder := filepath.Join(t.temp, fmt.Sprint(t.builds))
	scratch := filepath.Join(t.temp, "go")
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.MkdirAll(scratch, 0o700)); err != nil {
		t.say("%v", err)
		return nil, sum, false
	}
	// With a folder as output, what is no program is an error of the build. What an
	// interrupted build leaves behind is removed with the rest.
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

// only returns the single file of a folder, and the sum of its contents.
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

// drop removes a binary that is not run any more. One that cannot be removed now goes
// with the folder.
func (t *turn) drop(argv []string) {
	if t.plan.build != nil && len(argv) > 0 {
		_ = os.RemoveAll(filepath.Dir(argv[0]))
	}
}

// end asks the current program to end, and waits until it is gone.
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
		t.say("the program %s", p.how()) // before it was asked
	case time.Since(asked) >= t.config.DrainTimeout:
		t.say("the program did not end within %s and was killed", t.config.DrainTimeout)
	default:
		t.brief = 0
		t.say("the program %s", p.how())
	}
}

// ended notes that the current program ended by itself, and reports whether it succeeded.
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

// changed says which files did.
func changed(files []string) string {
	if len(files) > maxListed {
		return fmt.Sprintf("%s and %d more files changed", strings.Join(files[:maxListed], ", "), len(files)-maxListed)
	}
	return strings.Join(files, ", ") + " changed"
}

// withLast returns an environment in which each variable has its last value only: programs
// would take the first.
func withLast(env []string, more ...string) []string {
	var list []string
	seen := make(map[string]bool)
	for _, pair := range slices.Backward(slices.Concat(env, more)) {
		name, _, _ := strings.Cut(pair, "=")
		if name == "" || !seen[name] { // on Windows there are some without a name
			seen[name] = true
			list = append(list, pair)
		}
	}
	slices.Reverse(list)
	return list
}

// lookup returns the value of a variable; "" if there is none.
func lookup(env []string, name string) string {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			return v
		}
	}
	return ""
}
