//go:build unix && !aix

package builtin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task"
)

const secretValue = "hunter2-hunter2"

// everything returns all visible data of a task: events and the store.
func (s *shop) everything(id weaver.TaskID) string {
	s.Helper()
	h, err := s.History(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := json.Marshal(map[string]any{"history": h, "events": s.events})
	if err != nil {
		s.Fatal(err)
	}
	return string(raw)
}

// A secret reaches the command, and is masked in all of its output.
func TestRunSecret(t *testing.T) {
	t.Setenv("SHOP_TOKEN", secretValue)
	s := newShop(t, weaver.Config{})
	for name, c := range map[string]struct{ shell, stdout, stderr string }{
		"as it is":               {`echo "<$SHOP_TOKEN>"; echo "$SHOP_TOKEN" >&2`, "<***>\n", "***\n"},
		"split between blocks":   {`printf hunter2-; printf 'hunter2 .'`, "*** .", ""},
		"in base64":              {`printf %s "$SHOP_TOKEN" | base64`, "***\n", ""},
		"at the end of a stream": {`printf "x$SHOP_TOKEN"`, "x***", ""},
		"its beginning only":     {`printf "hunter2-"`, "hunter2-", ""},
	} {
		h := s.enqueue(builtin.RunInput{Shell: c.shell, SecretEnv: []string{"SHOP_TOKEN"}})
		out, err := h.Wait(t.Context())
		if err != nil || out.Stdout != c.stdout || out.Stderr != c.stderr {
			t.Errorf("%s: %q and %q, %v; want %q and %q", name, out.Stdout, out.Stderr, err, c.stdout, c.stderr)
		}
		if all := s.everything(h.ID()); strings.Contains(all, secretValue) {
			t.Errorf("%s: the secret is in\n%s", name, all)
		}
		if live := strings.Join(s.live(h.ID(), "stdout"), ""); live != c.stdout {
			t.Errorf("%s: the events have %q, want %q", name, live, c.stdout)
		}
	}
	h := s.enqueue(builtin.RunInput{Shell: `echo "no access with $SHOP_TOKEN" >&2; exit 3`, SecretEnv: []string{"SHOP_TOKEN"}})
	s.fails(h, weaver.StateFailed, task.KindHandler, "exit status 3: no access with ***")
	if all := s.everything(h.ID()); strings.Contains(all, secretValue) {
		t.Errorf("the secret is in\n%s", all)
	}
}

// A secret that cannot be masked is refused before the command starts.
func TestRunBadSecret(t *testing.T) {
	t.Setenv("SHOP_EMPTY", "")
	t.Setenv("SHOP_BLANK", " \n ")
	t.Setenv("SHOP_SHORT", " x1y ")
	ran := filepath.Join(t.TempDir(), "ran")
	s := newShop(t, weaver.Config{})
	for name, says := range map[string]string{
		"SHOP_UNSET": "secret_env: the variable SHOP_UNSET is not set where the worker runs: export it",
		"SHOP_EMPTY": "secret_env: the variable SHOP_EMPTY is empty: give it a value",
		"SHOP_BLANK": "secret_env: the variable SHOP_BLANK is empty: give it a value",
		"SHOP_SHORT": "secret_env: the value of SHOP_SHORT has fewer than 4 characters, and masking it would mask everything: use a longer secret",
	} {
		h := s.enqueue(builtin.RunInput{Argv: []string{"touch", ran}, SecretEnv: []string{name}}, weaver.MaxAttempts(3))
		s.fails(h, weaver.StateFailed, task.KindHandler, says)
		if strings.Contains(s.everything(h.ID()), "x1y") {
			t.Errorf("%s: the value is shown", name)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command ran")
	}
}

// A file of variables is read in each attempt, and only its path is stored.
func TestRunEnvFile(t *testing.T) {
	t.Setenv("SHOP_TOKEN", "of the worker")
	file := filepath.Join(t.TempDir(), "shop.env")
	s := newShop(t, weaver.Config{})
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := builtin.RunInput{
		Shell: `echo "$A $B $C $LANG $SHOP_TOKEN"`, EnvFile: file,
		Env: map[string]string{"B": "env"}, InheritEnv: []string{"SHOP_TOKEN"},
	}
	write("A=first\nA=last\nB=file\nLANG=xx\nSHOP_TOKEN=file\n")
	if out := s.run(in); out.Stdout != "last env  xx file\n" {
		t.Errorf("stdout = %q", out.Stdout)
	}
	write("A='" + secretValue + "'\n")
	in.SecretEnv = []string{"A"}
	h := s.enqueue(in)
	if out, err := h.Wait(t.Context()); err != nil || !strings.HasPrefix(out.Stdout, "*** env  ") || !strings.HasSuffix(out.Stdout, " of the worker\n") {
		t.Errorf("stdout = %q, %v", out.Stdout, err)
	}
	if strings.Contains(s.everything(h.ID()), secretValue) {
		t.Error("the secret of the file is shown")
	}
	write("A=1\nB\n")
	s.fails(s.enqueue(in, weaver.MaxAttempts(3)), weaver.StateFailed, task.KindHandler, "env_file: "+file+", line 2: no NAME=VALUE")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.fails(s.enqueue(in, weaver.MaxAttempts(3)), weaver.StateFailed, task.KindHandler, "env_file: there is no file", "create it, or change env_file")
}
