//go:build unix && !aix

package builtin_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/weavertest"
)

func TestRunSucceeds(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	for name, c := range map[string]struct {
		in   builtin.RunInput
		want builtin.RunOutput
	}{
		"both streams": {
			builtin.RunInput{Shell: "echo out; echo err >&2"},
			builtin.RunOutput{Stdout: "out\n", StdoutBytes: 4, Stderr: "err\n", StderrBytes: 4},
		},
		"nothing": {builtin.RunInput{Argv: []string{"true"}}, builtin.RunOutput{}},
		"arguments as they are": {
			builtin.RunInput{Argv: []string{"printf", "%s|", "a b", "", "$HOME", "'"}},
			builtin.RunOutput{Stdout: "a b||$HOME|'|", StdoutBytes: 13},
		},
		"no input": {builtin.RunInput{Shell: "cat; echo end"}, builtin.RunOutput{Stdout: "end\n", StdoutBytes: 4}},
		"a directory": {
			builtin.RunInput{Argv: []string{"pwd"}, Dir: "/"},
			builtin.RunOutput{Stdout: "/\n", StdoutBytes: 2},
		},
		"a timeout that is long enough": {
			builtin.RunInput{Shell: "echo quick", Timeout: builtin.Duration(time.Hour)},
			builtin.RunOutput{Stdout: "quick\n", StdoutBytes: 6},
		},
		"bytes that are no text": {
			builtin.RunInput{Argv: []string{"printf", `a\377\000b\303`}},
			builtin.RunOutput{Stdout: "a\uFFFD\uFFFDb\uFFFD", StdoutBytes: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := builtin.Run.Enqueue(t.Context(), s, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := h.Wait(t.Context()); err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// Users' tests run their tasks in a bubble of testing/synctest.
func TestRunInABubble(t *testing.T) {
	t.Parallel()
	e := weavertest.New(t, builtin.Handlers(builtin.Config{})...)
	out := weavertest.Run(t, e, builtin.Run, builtin.RunInput{Shell: "sleep 1000 & echo hello"})
	if out.Stdout != "hello\n" {
		t.Errorf("stdout = %q", out.Stdout)
	}
}

func TestRunEnvironment(t *testing.T) {
	t.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
	t.Setenv("HOME", "/")
	t.Setenv("LANG", "C")
	t.Setenv("SHOP_KEY", "k1")
	t.Setenv("SHOP_NAME", "n1")
	t.Setenv("SECRET", "s1")
	t.Setenv("WEAVER_JOB_ID", "of the task that runs this worker")
	s := newShop(t, weaver.Config{})
	base := []string{"HOME=/", "LANG=C", "PATH=/usr/local/bin:/usr/bin:/bin"}
	for name, c := range map[string]struct {
		in   builtin.RunInput
		want []string // besides the task's
		some bool     // there may be more
	}{
		"the least":       {in: builtin.RunInput{}, want: base},
		"a name":          {in: builtin.RunInput{InheritEnv: []string{"SECRET", "NO_SUCH"}}, want: append([]string{"SECRET=s1"}, base...)},
		"a prefix":        {in: builtin.RunInput{InheritEnv: []string{"SHOP_*"}}, want: append([]string{"SHOP_KEY=k1", "SHOP_NAME=n1"}, base...)},
		"everything":      {in: builtin.RunInput{InheritEnv: []string{"*"}}, want: append([]string{"SHOP_KEY=k1", "SECRET=s1"}, base...), some: true},
		"the input wins":  {in: builtin.RunInput{InheritEnv: []string{"SECRET"}, Env: map[string]string{"SECRET": "mine", "LANG": "", "WEAVER_ATTEMPT": "x"}}, want: []string{"HOME=/", "LANG=", base[2], "SECRET=mine", "WEAVER_ATTEMPT=x"}},
		"values as given": {in: builtin.RunInput{Env: map[string]string{"A": "x=y $B"}}, want: append([]string{"A=x=y $B"}, base...)},
	} {
		c.in.Argv = []string{"/usr/bin/env"}
		h := s.enqueue(c.in)
		out, err := h.Wait(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := strings.Split(strings.TrimSpace(out.Stdout), "\n")
		want := append([]string{"WEAVER_TASK_ID=" + h.ID().String()}, c.want...)
		if _, mine := c.in.Env["WEAVER_ATTEMPT"]; !mine {
			want = append(want, "WEAVER_ATTEMPT=1")
		}
		for _, pair := range want {
			if !slices.Contains(got, pair) {
				t.Errorf("%s: no %s in\n%s", name, pair, out.Stdout)
			}
		}
		if !c.some && len(got) != len(want) {
			t.Errorf("%s: got\n%s\nwant %q", name, out.Stdout, want)
		}
		if strings.Contains(out.Stdout, "WEAVER_JOB_ID") {
			t.Errorf("%s: a task outside jobs got the variables of one:\n%s", name, out.Stdout)
		}
	}
}

func TestRunEnvironmentInAJob(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	j := weaver.NewJob("release")
	j.Add("build", builtin.Run.With(builtin.RunInput{Shell: `echo "$WEAVER_JOB_ID $WEAVER_TASK_NAME $WEAVER_TASK_ID $WEAVER_ATTEMPT"`}))
	job, err := s.Submit(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	tasks, _, err := builtin.Run.List(t.Context(), s, weaver.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if want := job.ID().String() + " build " + tasks[0].ID.String() + " 1\n"; tasks[0].Output.Stdout != want {
		t.Errorf("got %q, want %q", tasks[0].Output.Stdout, want)
	}
}

// The program is looked up in the command's PATH, not in the worker's.
func TestRunFindsPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script(t, filepath.Join(dir, "bin", "hello"), "#!/bin/sh\necho hello from $0\n", 0o700)
	script(t, filepath.Join(dir, "shadow", "hello"), "not executable", 0o600)
	s := newShop(t, weaver.Config{})
	for name, c := range map[string]struct {
		in   builtin.RunInput
		want string // $0
	}{
		"in PATH":                   {builtin.RunInput{Argv: []string{"hello"}, Env: map[string]string{"PATH": dir + "/none:" + dir + "/shadow:" + dir + "/bin"}}, dir + "/bin/hello"},
		"in a relative PATH":        {builtin.RunInput{Argv: []string{"hello"}, Dir: dir, Env: map[string]string{"PATH": ":bin"}}, dir + "/bin/hello"},
		"by a path":                 {builtin.RunInput{Argv: []string{dir + "/bin/hello"}}, dir + "/bin/hello"},
		"by a path from the dir":    {builtin.RunInput{Argv: []string{"bin/hello"}, Dir: dir}, "bin/hello"},
		"by a path with dots in it": {builtin.RunInput{Argv: []string{"./hello"}, Dir: dir + "/bin"}, "./hello"},
	} {
		if got, want := s.run(c.in).Stdout, "hello from "+c.want+"\n"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func script(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// An error that a retry would repeat is not retried.
func TestRunMistakesArePermanent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := script(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o600)
	orphan := script(t, filepath.Join(dir, "orphan"), "#!/no/such/shell\n", 0o700)
	noise := script(t, filepath.Join(dir, "noise"), "\x01\x02\x03", 0o700)
	s := newShop(t, weaver.Config{InlineLimit: 1 << 20})
	for name, c := range map[string]struct {
		in   builtin.RunInput
		says []string
	}{
		"no such program":          {builtin.RunInput{Argv: []string{"no-such-program"}}, []string{`"no-such-program"`, "PATH (", "install it"}},
		"no PATH":                  {builtin.RunInput{Argv: []string{"ls"}, Env: map[string]string{"PATH": ""}}, []string{`"ls"`, "no PATH"}},
		"no such path":             {builtin.RunInput{Argv: []string{"/no/such/program"}}, []string{`"/no/such/program" does not exist`}},
		"no such path in dir":      {builtin.RunInput{Argv: []string{"./x"}, Dir: dir}, []string{`"` + dir + `/x" does not exist`}},
		"not executable":           {builtin.RunInput{Argv: []string{plain}}, []string{plain, "chmod +x"}},
		"not executable, in PATH":  {builtin.RunInput{Argv: []string{"plain"}, Env: map[string]string{"PATH": dir}}, []string{`executable program "plain"`, dir}},
		"a directory as program":   {builtin.RunInput{Argv: []string{dir}}, []string{dir, "is a directory, not a program"}},
		"no interpreter":           {builtin.RunInput{Argv: []string{orphan}}, []string{orphan, "#!"}},
		"no program at all":        {builtin.RunInput{Argv: []string{noise}}, []string{noise, "not a program for this system"}},
		"no such directory":        {builtin.RunInput{Argv: []string{"true"}, Dir: "/no/such/dir"}, []string{`"/no/such/dir" does not exist`, "change dir"}},
		"no such directory, ./":    {builtin.RunInput{Argv: []string{"./x"}, Dir: "/no/such/dir"}, []string{`the directory "/no/such/dir" does not exist`}},
		"not a directory":          {builtin.RunInput{Argv: []string{"true"}, Dir: plain}, []string{plain, "not a directory"}},
		"too many arguments":       {builtin.RunInput{Argv: []string{"true", strings.Repeat("x", 200<<10)}}, []string{"too long for this system"}},
		"below a file":             {builtin.RunInput{Argv: []string{plain + "/x"}}, []string{plain + "/x", "cannot be reached"}},
		"a shell in no directory":  {builtin.RunInput{Shell: "true", Dir: "/no/such/dir"}, []string{`"/no/such/dir" does not exist`}},
		"a name that is too long":  {builtin.RunInput{Argv: []string{"/" + strings.Repeat("x", 300)}}, []string{"cannot be reached"}},
		"not executable, with dir": {builtin.RunInput{Argv: []string{"./plain"}, Dir: dir}, []string{plain, "chmod +x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shop{TB: t, Engine: s.Engine}
			h := s.enqueue(c.in, weaver.MaxAttempts(2))
			s.fails(h, weaver.StateFailed, task.KindHandler, c.says...)
			if info, err := h.Get(t.Context()); err != nil || info.AttemptNo != 1 {
				t.Errorf("%d attempts, want one: %v", info.AttemptNo, err)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	for name, c := range map[string]struct {
		shell string
		want  string
	}{
		"with a status":           {"echo broken >&2; echo more >&2; exit 3", "exit status 3: more\nIt wrote last:\nbroken\nmore"},
		"silently":                {"exit 255", "exit status 255; it wrote nothing"},
		"by a signal":             {"echo here >&2; kill -9 $$", "ended by signal: killed: here"},
		"with words on stdout":    {"echo only out; exit 1", "exit status 1: only out"},
		"with words on both":      {"echo out; echo err >&2; exit 1", "exit status 1: err\nIt wrote last:\nerr\nand to stdout:\nout"},
		"with much on stderr":     {"seq 1 1000 >&2; echo out; exit 1", "exit status 1: 1000\nIt wrote 1001 lines in all, last:\n" + seq(981, 1000)},
		"with much on stdout":     {"seq 1 1000; echo err >&2; exit 1", "exit status 1: err\nIt wrote 1001 lines in all."},
		"with very long lines":    {"for i in 1 2; do head -c 10000 /dev/zero | tr '\\0' x; echo; done; exit 1", "exit status 1: " + strings.Repeat("x", 197) + "…\nIt wrote 2 lines in all, last:\n" + strings.Repeat("x", 4096)},
		"after a progress bar":    {"printf 'start\\nprogress\\r50%%\\r100%%\\r\\n'; exit 3", "exit status 3: 100%\nIt wrote last:\nstart\n100%"},
		"with blank ends":         {"seq 1 2 | sed 's/$/\\r/'; echo; echo; printf 'err\\n\\n' >&2; exit 1", "exit status 1: err\nIt wrote last:\nerr\nand to stdout:\n1\n2"},
		"with an unfinished line": {"seq 1 21 >&2; printf end >&2; exit 1", "exit status 1: end\nIt wrote 22 lines in all, last:\n" + seq(3, 21) + "\nend"},
		"as the shell says":       {"no-such-program-in-a-shell 2>/dev/null", "exit status 127; it wrote nothing"},
		"with both, 21 lines":     {"seq 1 10; seq 1 10 >&2; exit 1", "exit status 1: 10\nIt wrote 20 lines in all, last:\n" + seq(1, 10)},
		"with both, 20 lines":     {"seq 1 9; seq 1 10 >&2; exit 1", "exit status 1: 10\nIt wrote last:\n" + seq(1, 10) + "\nand to stdout:\n" + seq(1, 9)},
		"with lines of two bytes": {`yes é | tr -d '\n' | head -c 6000; printf x; exit 1`, "exit status 1: " + strings.Repeat("é", 98) + "…\nIt wrote last:\n" + strings.Repeat("é", 2047) + "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.enqueueOn(t, builtin.RunInput{Shell: c.shell}).Wait(t.Context())
			var failure *weaver.TaskError
			if !errors.As(err, &failure) || failure.Message != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

// seq returns the output of seq.
func seq(from, to int) string {
	var lines []string
	for i := from; i <= to; i++ {
		lines = append(lines, strconv.Itoa(i))
	}
	return strings.Join(lines, "\n")
}

func (s *shop) enqueueOn(t *testing.T, in builtin.RunInput) *weaver.Handle[builtin.RunOutput] {
	return (&shop{TB: t, Engine: s.Engine}).enqueue(in)
}

// An ordinary failure is retried.
func TestRunIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := weavertest.New(t, builtin.Handlers(builtin.Config{})...)
	mark := filepath.Join(t.TempDir(), "mark")
	out := weavertest.Run(t, e, builtin.Run, builtin.RunInput{Shell: `[ -e "$MARK" ] || { : >"$MARK"; exit 1; }; echo attempt $WEAVER_ATTEMPT`, Env: map[string]string{"MARK": mark}})
	if out.Stdout != "attempt 2\n" {
		t.Errorf("stdout = %q", out.Stdout)
	}
}

// The handler's error has its parts.
func TestRunExitError(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]builtin.ExitError{
		"echo x; exit 7": {Code: 7, Tail: "x", Last: "x", Lines: 1},
		"kill -TERM $$":  {Code: -1, Signal: "terminated"},
	} {
		_, err := builtin.RunCommand(t.Context(), builtin.RunInput{Shell: shell})
		var got *builtin.ExitError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%s: %+v, want %+v", shell, err, want)
		}
	}
}
