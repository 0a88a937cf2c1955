package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/procgroup"
)

// command is a process to start.
type command struct {
	path string // of the program
	argv []string
	env  []string
	dir  string
	mask *mask // of its output
}

// newCommand builds the environment and finds the program. Its errors are
// permanent, except errors of the worker.
func newCommand(in RunInput, info weaver.CurrentInfo) (command, error) {
	c := command{argv: in.Argv, dir: in.Dir}
	if in.Shell != "" {
		c.argv = []string{"/bin/sh", "-c", in.Shell}
	}
	env, err := newEnvironment(in, info)
	if engine.IsOwnTrouble(err) {
		return c, weaver.NotHere(fmt.Errorf("run a command: %w", err))
	}
	if err != nil {
		return c, weaver.Permanent(fmt.Errorf("run a command: %w", err))
	}
	c.env, c.mask = env.list, newMask(env.secrets)
	if c.path, err = find(c.argv[0], c.dir, env.path); err != nil {
		return c, c.mask.failure(c.explain(err))
	}
	return c, nil
}

// exit is the end of a command.
type exit struct {
	code    int    // -1: ended by a signal
	signal  string // name of the signal
	stopped error  // cause of a termination before it ended by itself
}

// run runs the command until its process group is gone. It starts the readers of
// out.
func (c command) run(ctx context.Context, out *output) (exit, error) {
	p, forget, err := c.lead(ctx, out)
	if err != nil {
		return exit{}, c.mask.failure(c.explain(err))
	}
	state, err := p.Clear()
	forget()
	if err != nil {
		return exit{}, fmt.Errorf("wait for %s: %w", c.argv[0], err)
	}
	how := exit{code: state.ExitCode(), stopped: p.Stopped()}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		how.signal = s.Signal().String()
	}
	return how, nil
}

// lead starts the command and returns when its leader has ended. Until forget is
// called, the end of ctx still ends the rest of the group.
func (c command) lead(ctx context.Context, out *output) (p *procgroup.Process, forget func(), err error) {
	runtime.LockOSThread() // see procgroup.Start
	defer runtime.UnlockOSThread()
	p, err = procgroup.Start(procgroup.Program{Path: c.path, Argv: c.argv, Env: c.env, Dir: c.dir, Stdout: out.stdout.w, Stderr: out.stderr.w})
	out.closeWriters() // only the command holds them: the output ends with the command
	if err != nil {
		return nil, nil, err
	}
	out.read(ctx)
	ended := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(ended)
		cause := context.Cause(ctx)
		p.End(cause, graceOf(cause))
	})
	p.Await()
	return p, func() {
		if !unwatch() {
			<-ended
		}
	}, nil
}

// Time between SIGTERM and SIGKILL.
var (
	cancelGrace = 10 * time.Second // after a cancel, a deadline or a timeout; a variable for tests
	drainGrace  = time.Second      // the engine waits at most 2 s
)

// graceOf returns the time for a command to end after its attempt ended.
func graceOf(cause error) time.Duration {
	switch {
	case errors.Is(cause, weaver.ErrLeaseLost), errors.Is(cause, weaver.ErrLeaseUncertain):
		return 0 // another worker may have started the task
	case errors.Is(cause, weaver.ErrDraining):
		return drainGrace
	}
	return cancelGrace
}

// find returns the path of a program. Relative directories in PATH are relative to
// the command's directory. Empty ones are ignored: they are mistakes.
func find(name, dir, path string) (string, error) {
	if filepath.Base(name) != name {
		if relativeToDir {
			return name, nil
		}
		return lookIn(dir, name)
	}
	for _, in := range filepath.SplitList(path) {
		if in == "" {
			continue
		}
		full := filepath.Join(in, name)
		if filepath.IsAbs(full) {
			if found, err := exec.LookPath(full); err == nil {
				return found, nil
			}
		} else if found, err := lookIn(dir, full); err == nil {
			return found, nil
		}
	}
	return "", &notInPath{name: name, path: path}
}

func lookIn(dir, name string) (string, error) {
	full, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	return exec.LookPath(full)
}

type notInPath struct{ name, path string }

// Error implements error.
func (e *notInPath) Error() string {
	if e.path == "" {
		return fmt.Sprintf("the program %q cannot be found, because the command has no PATH: give its full path, or set PATH in env", e.name)
	}
	return fmt.Sprintf("no directory of PATH (%s) has an executable program %q: install it on this worker, give its full path, or set PATH in env", e.path, e.name)
}

// explain returns the reason why the command did not start. Errors that a retry
// would repeat are permanent; others are the worker's.
func (c command) explain(err error) error {
	if why := c.mistake(err); why != nil {
		return weaver.Permanent(fmt.Errorf("run a command: %w", why))
	}
	return weaver.NotHere(fmt.Errorf("start %s: %w", c.argv[0], err))
}

// mistake returns nil for a cause on this worker: no memory, too many processes or
// files.
func (c command) mistake(err error) error {
	// The kernel returns the same error for the directory and the program.
	if c.dir != "" {
		switch info, err := os.Stat(c.dir); {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("the directory %q does not exist on this worker: create it, or change dir", c.dir)
		case err != nil:
			return fmt.Errorf("the directory %q cannot be used: %w", c.dir, err)
		case !info.IsDir():
			return fmt.Errorf("%q is not a directory: change dir", c.dir)
		}
	}
	path := c.path
	if path == "" {
		path = c.argv[0]
	}
	if c.dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(c.dir, path)
	}
	info, statErr := os.Stat(path)
	var lost *notInPath
	switch {
	case errors.As(err, &lost):
		return lost
	case errors.Is(statErr, os.ErrNotExist):
		return fmt.Errorf("the program %q does not exist on this worker: install it, or correct the path", path)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%q exists, but not what runs it: look at its first line (#!), or at the loader it was linked for", path)
	case statErr == nil && info.IsDir():
		return fmt.Errorf("%q is a directory, not a program", path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%q may not be executed by this worker's user, or its directory %q not entered: chmod +x, or run the worker as another user", path, c.dir)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%q is not a program for this system: a script needs a first line such as #!/bin/sh", path)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("the program %q cannot be reached: %w", path, err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("the arguments and environment of %q are too long for this system (%w): write them to a file", path, err)
	}
	return nil
}

// environment builds the environment of a command.
type environment struct {
	list    []string
	have    map[string]bool
	path    string
	secrets []string // values
}

func newEnvironment(in RunInput, info weaver.CurrentInfo) (*environment, error) {
	var file []variable
	if in.EnvFile != "" {
		var err error
		if file, err = readEnvFile(in.EnvFile); err != nil {
			return nil, err
		}
	}
	e := &environment{list: make([]string, 0, len(in.Env)+8), have: make(map[string]bool, len(in.Env)+8)}
	// The first value of a name wins.
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		e.add(name, in.Env[name])
	}
	if err := e.addSecrets(in.SecretEnv, file); err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(file) { // the last one wins
		e.add(v.name, v.value)
	}
	if info.TaskID != (weaver.TaskID{}) {
		e.add("WEAVER_TASK_ID", info.TaskID.String())
		e.add("WEAVER_ATTEMPT", strconv.Itoa(info.AttemptNo))
	}
	if info.JobID != (weaver.JobID{}) {
		e.add("WEAVER_JOB_ID", info.JobID.String())
		e.add("WEAVER_TASK_NAME", info.Node)
	}
	if info.Undoing {
		e.add("WEAVER_UNDO", "1")
	}
	// Unset outside a job or a handler: a worker that itself runs as a task must not
	// pass on its own.
	for _, name := range []string{"WEAVER_TASK_ID", "WEAVER_ATTEMPT", "WEAVER_JOB_ID", "WEAVER_TASK_NAME", "WEAVER_UNDO"} {
		e.have[name] = true
	}
	for _, name := range alwaysInherited {
		e.inherit(name)
	}
	for _, name := range in.InheritEnv {
		e.inherit(name)
	}
	return e, nil
}

// addSecrets adds the variables of SecretEnv. Its error names all unusable
// variables.
func (e *environment) addSecrets(names []string, file []variable) error {
	var problems []error
	for _, name := range names {
		value, set := lookup(name, file)
		if err := checkSecret("secret_env", name, value, set); err != nil {
			problems = append(problems, err)
			continue
		}
		e.secrets = append(e.secrets, value)
		e.add(name, value)
	}
	return errors.Join(problems...)
}

func (e *environment) add(name, value string) {
	if e.have[name] {
		return
	}
	e.have[name] = true
	e.list = append(e.list, name+"="+value)
	if name == "PATH" {
		e.path = value
	}
}

// inherit copies a variable of the worker, or all that match a pattern.
func (e *environment) inherit(pattern string) {
	prefix, many := strings.CutSuffix(pattern, "*")
	if !many {
		if value, ok := os.LookupEnv(pattern); ok {
			e.add(pattern, value)
		}
		return
	}
	for _, pair := range os.Environ() {
		name, value, ok := strings.Cut(pair, "=")
		if ok && name != "" && strings.HasPrefix(name, prefix) {
			e.add(name, value)
		}
	}
}
