package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
)

// RunInput is a command to run. Exactly one of Argv and Shell is set.
//
// The command has no input (/dev/null) and no terminal. On Unix it leads a session
// and a process group of its own, and the whole group ends with the attempt.
// Background processes end when the command exits. The whole group ends on a
// cancel or timeout (SIGTERM, then SIGKILL after 10 s), on a lost lease (SIGKILL
// at once), on a stop of the worker (SIGTERM, then SIGKILL after 1 s), and when
// the worker itself is killed. A daemon in a session of its own keeps running.
type RunInput struct {
	Argv  []string `json:"argv,omitempty"`  // program and arguments; the program is looked up in the command's PATH
	Shell string   `json:"shell,omitempty"` // for /bin/sh -c; with several lines, begin with set -e

	// Env is added to the command's environment. The environment has PATH, HOME and
	// LANG of the worker, the variables of InheritEnv, and WEAVER_TASK_ID,
	// WEAVER_JOB_ID, WEAVER_TASK_NAME and WEAVER_ATTEMPT; in an undo also
	// WEAVER_UNDO=1.
	Env map[string]string `json:"env,omitempty"`
	// InheritEnv names more variables to inherit from the worker. A name may end in *;
	// "*" alone means all.
	InheritEnv []string `json:"inherit_env,omitempty"`
	// EnvFile is a file of NAME=VALUE lines that the worker reads in each attempt and
	// adds to the environment; only its path is stored. Env overrides it. A missing or
	// malformed file fails the task.
	EnvFile string `json:"env_file,omitempty"`
	// SecretEnv names variables from EnvFile, or else from the worker, whose values
	// are never stored: the command's output shows *** for each, also in base64. A
	// variable that is not set or has fewer than 4 characters fails the task.
	SecretEnv []string `json:"secret_env,omitempty"`

	// Templates enables references to values of needs in Argv and in the values of
	// Env. They are filled in when an attempt begins; a value that does not exist or
	// was cut fails the task. Shell has no references: pass values in Env.
	//
	// A command has {{.tasks.NAME.stdout}}, stderr and exit_code (only exit_code if it
	// failed). A request has body and status. Every task has parts of its JSON, as in
	// {{.tasks.NAME.json.items[0].id}}. {{.tasks.NAME.artifacts["out/a.csv"]}} is the
	// path of a copy of a kept file, which exists until the command ends, or the URL
	// of a link. NAME is the need's name in the job; {{.tasks["a b"].stdout}} allows
	// any name. {{"{{"}} stands for two braces.
	Templates bool `json:"templates,omitempty"`

	// Artifacts are patterns of files below Dir, in the syntax of package path. After
	// the command succeeds, matching files are kept as artifacts of the task, named by
	// their path, together with its output. A pattern without a match fails the
	// attempt. Files are kept as they are: nothing in them is masked. A worker without
	// a bucket leaves the task to other workers.
	Artifacts []string `json:"artifacts,omitempty"`
	// ArtifactsOptional are patterns that may match no files.
	ArtifactsOptional []string `json:"artifacts_optional,omitempty"`
	// ArtifactsTTL is the minimum age at which artifacts may be deleted, never before
	// the task ends. Default: they live as long as the task.
	ArtifactsTTL Duration `json:"artifacts_ttl,omitempty"`

	Dir     string   `json:"dir,omitempty"`     // directory of the command; default the worker's directory
	Timeout Duration `json:"timeout,omitempty"` // of one attempt; default none
}

// RunOutput is the output of a command that exited with 0. A long stream keeps its
// end: the whole output fits the inline limit, and each stream is at most 256 KiB.
type RunOutput struct {
	ExitCode        int    `json:"exit_code"`
	Stdout          string `json:"stdout,omitempty"` // UTF-8; U+FFFD replaces other bytes and NUL
	Stderr          string `json:"stderr,omitempty"`
	StdoutBytes     int64  `json:"stdout_bytes"` // bytes written in total, with *** for secrets
	StderrBytes     int64  `json:"stderr_bytes"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"` // the beginning is missing
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`
}

// Validate returns all problems with the input. Enqueue calls it.
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
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
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

// runner is the handler of Run.
type runner struct {
	logs func(weaver.CurrentInfo) io.WriteCloser // nil: no log
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

// ExitError is the error of a command that did not succeed.
type ExitError struct {
	Code   int    // exit status, or -1 if a signal ended the command
	Signal string // name of that signal, such as "killed", or ""
	Tail   string // last lines of stderr, or else of stdout; at most 20, and 4 KiB
	Last   string // last line, of stderr if there is one; at most 200 bytes
	Lines  int    // number of written lines, without blank lines at the ends
}

// Error implements error. Its first line is the most useful, for lists. If Tail
// omits lines, the second line has the total.
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
