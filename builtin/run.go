package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
)

// RunInput says which command to run. One of Argv and Shell is given.
//
// The command has no input (/dev/null) and no terminal. On Unix it leads a
// session and process group of its own, and everything in that group ends with
// the attempt: what it left in the background when it exits; all of it when
// the task is cancelled or runs out of time (SIGTERM, and SIGKILL after 10 s),
// when the lease is lost (SIGKILL at once), when the worker stops (SIGTERM,
// and SIGKILL after 1 s), and when the worker itself is killed. A daemon that
// made a session of its own is left alone.
type RunInput struct {
	Argv  []string `json:"argv,omitempty"`  // program and arguments; the program is looked up in the command's PATH
	Shell string   `json:"shell,omitempty"` // for /bin/sh -c; with several lines, begin with set -e

	// Env is added to the command's environment, which otherwise has PATH,
	// HOME and LANG of the worker, those of InheritEnv, and WEAVER_TASK_ID,
	// WEAVER_JOB_ID, WEAVER_TASK_NAME and WEAVER_ATTEMPT; in an undo WEAVER_UNDO=1.
	Env map[string]string `json:"env,omitempty"`
	// InheritEnv names further variables to take over from the worker; a name
	// may end in *, and "*" alone means all.
	InheritEnv []string `json:"inherit_env,omitempty"`
	// EnvFile is a file of NAME=VALUE lines that the worker reads in each
	// attempt; its variables are added to the environment, and only its path is
	// stored. Env wins over it. A file that is not there or that has a mistake
	// fails the task.
	EnvFile string `json:"env_file,omitempty"`
	// SecretEnv names variables to take over, from EnvFile or else from the
	// worker, whose values are never stored: the output of the command shows
	// *** for each, also in base64. A variable that is not set, or that has
	// fewer than 4 characters, fails the task.
	SecretEnv []string `json:"secret_env,omitempty"`

	// Templates says that Argv and the values of Env have values of tasks that
	// this one needs: {{.tasks.NAME.stdout}}, stderr and exit_code of a command
	// (of one that failed, exit_code), body and status of a request, of any task a
	// part of its JSON as {{.tasks.NAME.json.items[0].id}}, and as
	// {{.tasks.NAME.artifacts["out/a.csv"]}} the path of a copy of a file that it kept,
	// which is there until the command has ended (of a link, its URL). NAME is a need's
	// name in the job; {{.tasks["a b"].stdout}} has any. {{"{{"}} stands for two
	// braces. They are filled in when an attempt begins; a value that is not
	// there, or was cut, fails the task. Shell has none: pass a value on in Env.
	Templates bool `json:"templates,omitempty"`

	// Artifacts are patterns of files below Dir, as package path has them: those that
	// match are kept with the task as artifacts of their path when the command has
	// succeeded, and with its output. One that matches no file fails the attempt.
	// They are kept as they are: nothing in them is masked. A worker without
	// a bucket leaves the task to others, and does not run the command.
	Artifacts []string `json:"artifacts,omitempty"`
	// ArtifactsOptional are such patterns of files that need not be there.
	ArtifactsOptional []string `json:"artifacts_optional,omitempty"`
	// ArtifactsTTL lets them go after a time, but not before the task has ended;
	// default none: they stay as long as the task.
	ArtifactsTTL Duration `json:"artifacts_ttl,omitempty"`

	Dir     string   `json:"dir,omitempty"`     // where it runs; default the worker's directory
	Timeout Duration `json:"timeout,omitempty"` // of one attempt; default none
}

// RunOutput is what a command that exited with 0 left behind. Each stream
// keeps its end when it is too long: the whole output fits the inline limit,
// and no stream keeps more than 256 KiB.
type RunOutput struct {
	ExitCode        int    `json:"exit_code"`
	Stdout          string `json:"stdout,omitempty"` // UTF-8; other bytes and NUL are replaced by U+FFFD
	Stderr          string `json:"stderr,omitempty"`
	StdoutBytes     int64  `json:"stdout_bytes"` // written in all, with *** for what is secret
	StderrBytes     int64  `json:"stderr_bytes"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"` // the beginning is missing
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`
}

// Validate reports everything that is wrong with the input, so that it is
// refused when it is enqueued.
func (in RunInput) Validate() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch {
	case len(in.Argv) == 0 && in.Shell == "":
		complain("nothing to run: give argv (a program and its arguments) or shell (a line for /bin/sh)")
	case len(in.Argv) > 0 && in.Shell != "":
		complain("argv and shell are both given: keep one of them")
	case len(in.Argv) > 0 && in.Argv[0] == "":
		complain("argv[0] is empty: it names the program")
	}
	nul := func(what, s string) {
		if strings.ContainsRune(s, 0) {
			complain("%s contains a NUL character, which no command can be given", what)
		}
	}
	for i, arg := range in.Argv {
		nul(fmt.Sprintf("argv[%d]", i), arg)
	}
	if in.Templates {
		problems = append(problems, in.texts().Check()...)
	}
	nul("shell", in.Shell)
	nul("dir", in.Dir)
	for _, name := range sortedKeys(in.Env) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			complain("env has a variable %q: a name is not empty and has neither = nor NUL", name)
		}
		nul("env."+name, in.Env[name])
	}
	for i, name := range in.InheritEnv {
		if name == "" || strings.ContainsAny(strings.TrimSuffix(name, "*"), "=*\x00") {
			complain(`inherit_env[%d] is %q: write a name, the beginning of names as in "AWS_*", or "*"`, i, name)
		}
	}
	problems = append(problems, in.validateArtifacts()...)
	nul("env_file", in.EnvFile)
	for i, name := range in.SecretEnv {
		if problem := checkSecretName(name); problem != "" {
			complain("secret_env[%d] is %q: %s", i, name, problem)
		}
		if _, stored := in.Env[name]; stored {
			complain("secret_env has %s, which env gives a value that is stored: remove it from env, and set it where the worker runs", name)
		}
	}
	if in.Timeout < 0 {
		complain("timeout is negative")
	}
	return errors.Join(problems...)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// runner has the handler of Run.
type runner struct {
	logs func(weaver.CurrentInfo) io.WriteCloser // nil: none
}

func (r runner) run(ctx context.Context, in RunInput) (RunOutput, error) {
	if err := in.Validate(); err != nil {
		return RunOutput{}, weaver.Permanent(fmt.Errorf("run a command: %w", err)) // a draft made by name was not validated
	}
	ctx, cancel := limited(ctx, in.Timeout)
	defer cancel()
	if ctx.Err() != nil {
		return RunOutput{}, context.Cause(ctx)
	}
	if in.keeps() {
		if out, done, err := in.kept(ctx); done || err != nil {
			return out, err
		}
	}
	files := handed{}
	defer files.remove()
	in, err := in.filled(ctx, &files)
	if err != nil {
		return RunOutput{}, err
	}
	info := weaver.Current(ctx)
	c, err := newCommand(in, info)
	if err != nil {
		return RunOutput{}, err
	}
	limit := info.InlineLimit
	if limit == 0 {
		limit = weaver.DefaultInlineLimit
	}
	out, err := openOutput(ctx, limit, c.mask)
	if err != nil {
		return RunOutput{}, weaver.NotHere(fmt.Errorf("run %s: make pipes for the output: %w", c.argv[0], err))
	}
	defer out.close()
	if r.logs != nil {
		out.log.open = func() io.WriteCloser { return r.logs(info) }
	}

	ended, err := c.run(ctx, out)
	if err != nil {
		return RunOutput{}, err
	}
	if err := out.wait(ended.stopped != nil); err != nil {
		return RunOutput{}, fmt.Errorf("read the output of %s: %w", c.argv[0], err)
	}
	if ended.stopped == nil && ended.code == 0 {
		if in.keeps() {
			return in.keep(ctx, out.result(limit))
		}
		return out.result(limit), nil
	}
	failure := &ExitError{Code: ended.code, Signal: ended.signal}
	failure.Tail, failure.Last = out.lastWords()
	failure.Lines = out.stdout.lines() + out.stderr.lines()
	if ended.stopped != nil {
		return RunOutput{}, fmt.Errorf("%w: the command was asked to end: %w", ended.stopped, failure)
	}
	return RunOutput{}, failure
}

// ExitError says how a command ended that did not succeed.
type ExitError struct {
	Code   int    // exit status; -1 when a signal ended it
	Signal string // that ended it, such as "killed"; "" when none did
	Tail   string // the last lines that it wrote: to stderr, or else to stdout; at most 20, and 4 KiB
	Last   string // the last of these, to stderr if there is one; at most 200 bytes
	Lines  int    // that it wrote in all, without blank ones at the ends
}

// Error implements error. Its first line says the most, for lists. When Tail is
// not all that the command wrote the second line says how much that is.
func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != "" {
		how = "ended by signal: " + e.Signal
	}
	count := ""
	if e.Lines > lineCount(e.Tail) {
		count = fmt.Sprintf("%d lines in all", e.Lines) // internal/explain reads this
	}
	switch {
	case e.Tail == "":
		return how + "; it wrote nothing"
	case e.Tail == e.Last && count == "":
		return how + ": " + e.Last
	case e.Tail == e.Last:
		return how + ": " + e.Last + "\nIt wrote " + count + "."
	case count != "":
		count += ", "
	}
	return how + ": " + e.Last + "\nIt wrote " + count + "last:\n" + e.Tail
}
