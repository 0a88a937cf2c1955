package builtin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/weavertest"
)

func TestRunMistakes(t *testing.T) {
	t.Parallel()
	e := weavertest.New(t, builtin.Handlers(builtin.Config{})...)
	for name, c := range map[string]struct {
		in   builtin.RunInput
		says string
	}{
		"nothing":            {builtin.RunInput{}, "nothing to run"},
		"both":               {builtin.RunInput{Argv: []string{"ls"}, Shell: "ls"}, "argv and shell are both given"},
		"an empty program":   {builtin.RunInput{Argv: []string{"", "x"}}, "argv[0] is empty"},
		"NUL in argv":        {builtin.RunInput{Argv: []string{"ls", "a\x00b"}}, "argv[1] contains a NUL"},
		"NUL in shell":       {builtin.RunInput{Shell: "a\x00b"}, "shell contains a NUL"},
		"NUL in dir":         {builtin.RunInput{Shell: "ls", Dir: "a\x00b"}, "dir contains a NUL"},
		"NUL in a value":     {builtin.RunInput{Shell: "ls", Env: map[string]string{"A": "a\x00b"}}, "env.A contains a NUL"},
		"NUL in a name":      {builtin.RunInput{Shell: "ls", Env: map[string]string{"A\x00": "a"}}, `variable "A\x00"`},
		"an empty name":      {builtin.RunInput{Shell: "ls", Env: map[string]string{"": "a"}}, `variable ""`},
		"= in a name":        {builtin.RunInput{Shell: "ls", Env: map[string]string{"A=B": "a"}}, `variable "A=B"`},
		"an empty pattern":   {builtin.RunInput{Shell: "ls", InheritEnv: []string{"A", ""}}, `inherit_env[1] is ""`},
		"* in the middle":    {builtin.RunInput{Shell: "ls", InheritEnv: []string{"A*B"}}, `inherit_env[0] is "A*B"`},
		"two *":              {builtin.RunInput{Shell: "ls", InheritEnv: []string{"A**"}}, `inherit_env[0] is "A**"`},
		"= in a pattern":     {builtin.RunInput{Shell: "ls", InheritEnv: []string{"A=B"}}, `inherit_env[0] is "A=B"`},
		"a path upwards":     {builtin.RunInput{Shell: "ls", Artifacts: []string{"a", "../b"}}, `artifacts[1] is "../b"`},
		"an absolute path":   {builtin.RunInput{Shell: "ls", ArtifactsOptional: []string{"/b"}}, `artifacts_optional[0] is "/b"`},
		"NUL in a pattern":   {builtin.RunInput{Shell: "ls", Artifacts: []string{"a\x00b"}}, "contains a NUL"},
		"a negative timeout": {builtin.RunInput{Shell: "ls", Timeout: -1}, "timeout is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := builtin.Run.Enqueue(t.Context(), e, c.in)
			if !errors.Is(err, weaver.ErrInvalidInput) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Enqueue = %v, want ErrInvalidInput that says %q", err, c.says)
			}
		})
	}
}

func TestRunTellsAllMistakes(t *testing.T) {
	t.Parallel()
	err := builtin.RunInput{Env: map[string]string{"": ""}, Timeout: -1}.Validate()
	for _, says := range []string{"nothing to run", `variable ""`, "timeout"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Validate = %v, want also %q", err, says)
		}
	}
}

func TestRunNoMistake(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]builtin.RunInput{
		"shell": {Shell: "ls", InheritEnv: []string{"*", "AWS_*", "_"}, Timeout: builtin.Duration(time.Second), Dir: "x"},
		"argv":  {Argv: []string{"ls", "", "="}, Env: map[string]string{"a.b": "", "C": "=\n"}},
	} {
		if err := in.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A draft made by name is validated when it runs: it blocks.
func TestRunMistakesOfADraft(t *testing.T) {
	t.Parallel()
	_, err := builtin.RunCommand(t.Context(), builtin.RunInput{Argv: []string{"ls"}, Shell: "ls"})
	if err == nil || !strings.Contains(err.Error(), "both given") {
		t.Errorf("run = %v", err)
	}
	e := weavertest.New(t, builtin.Handlers(builtin.Config{})...)
	got, err := e.EnqueueTasks(t.Context(), weaver.NewDraft(builtin.Run.Name(), json.RawMessage(`{"argv":[]}`)))
	if err != nil {
		t.Fatal(err)
	}
	weavertest.Run(t, e, builtin.Run, builtin.RunInput{Argv: []string{"true"}}) // until nothing is due
	info, err := e.Get(t.Context(), got[0].ID)
	if err != nil || info.State != weaver.StateBlocked || !strings.Contains(info.Error.Message, "nothing to run") {
		t.Errorf("the task is %s: %+v, %v", info.State, info.Error, err)
	}
}
