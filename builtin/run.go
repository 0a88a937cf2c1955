package builtin

import (
	"context"
	"errors"
)

// RunInput says which command to run. One of Argv and Shell is given.
type RunInput struct {
	Argv  []string `json:"argv,omitempty"`  // program and arguments; the program is looked up in PATH
	Shell string   `json:"shell,omitempty"` // a line for /bin/sh -c

	// Env is added to the command's environment, which otherwise has PATH,
	// HOME and LANG of the worker, those of InheritEnv, and WEAVER_TASK_ID,
	// WEAVER_JOB_ID, WEAVER_TASK_NAME and WEAVER_ATTEMPT.
	Env map[string]string `json:"env,omitempty"`
	// InheritEnv names further variables to take over from the worker; a name
	// may end in *, and "*" alone means all.
	InheritEnv []string `json:"inherit_env,omitempty"`

	Dir     string   `json:"dir,omitempty"`     // where it runs; default the worker's directory
	Timeout Duration `json:"timeout,omitempty"` // of one attempt; default none
}

// RunOutput is what a command that exited with 0 left behind. Each stream
// keeps its end when it is too long: the whole output fits the inline limit.
type RunOutput struct {
	ExitCode        int    `json:"exit_code"`
	Stdout          string `json:"stdout,omitempty"` // UTF-8; other bytes are replaced by U+FFFD
	Stderr          string `json:"stderr,omitempty"`
	StdoutBytes     int64  `json:"stdout_bytes"` // written in all
	StderrBytes     int64  `json:"stderr_bytes"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"` // the beginning is missing
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`
}

func run(context.Context, RunInput) (RunOutput, error) { return RunOutput{}, errors.New("TODO") }
