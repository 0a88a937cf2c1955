package clitest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task"
)

// documented returns the command that docs/mcp.md tells clients to start.
func documented(t *testing.T) (args []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	snippet := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	if snippet == nil {
		t.Fatal("docs/mcp.md has no JSON")
	}
	var doc struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(snippet[1], &doc); err != nil {
		t.Fatal(err)
	}
	s := doc.Servers["weaver"]
	if s.Command != "weaver" || len(s.Args) != 3 || s.Args[0] != "mcp" || s.Args[1] != "--store" {
		t.Fatalf("docs/mcp.md starts %q %q", s.Command, s.Args)
	}
	return s.Args
}

// A client starts the command as in docs/mcp.md and uses its tools.
func TestMCP(t *testing.T) {
	t.Parallel()
	dir, weaver := t.TempDir(), program(t)
	args := documented(t)
	args[2] = "sqlite:" + filepath.Join(dir, "weaver.db")
	if out, err := exec.Command(weaver, "--store", args[2], "migrate", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(weaver, append(args, "--allow-writes", "--show-payloads")...)
	cmd.Env = append(os.Environ(), "WEAVER_NAMESPACE=", "WEAVER_BUCKET=", "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(tool string, args map[string]any) string {
		t.Helper()
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	var got struct {
		ID task.ID `json:"id"`
	}
	answer := call("enqueue", map[string]any{"type": builtin.Run.Name(), "input": map[string]any{"shell": "echo it runs; exit 3"}, "idempotency_key": "k"})
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	one := map[string]any{"id": got.ID.String()}
	if out, err := exec.Command(weaver, "--store", args[2], "worker", "--until-idle").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for tool, want := range map[string]string{
		"counts": `":{"n":1}`, "list_tasks": got.ID.String(), "why": "exit", "logs": "it runs", "list_types": builtin.Run.Name(), "show_task": "echo it runs",
	} {
		args := one
		if tool == "counts" || tool == "list_tasks" || tool == "list_types" {
			args = nil
		}
		if answer := call(tool, args); !strings.Contains(answer, want) {
			t.Errorf("%s: %s, want %q", tool, answer, want)
		}
	}
	if answer := call("enqueue", map[string]any{"type": "acme.demo.greet.v1"}); !strings.Contains(answer, "neither this program knows nor a worker") {
		t.Errorf("enqueue of an unknown type: %s", answer)
	}
	if answer := call("cancel", map[string]any{"id": got.ID.String(), "reason": "enough"}); !strings.Contains(answer, `"state":"cancelled"`) {
		t.Errorf("cancel: %s", answer)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cs.Wait() // the signal ended it
	_ = cs.Close()
	if stderr.Len() > 0 {
		t.Errorf("it wrote %s", stderr.String())
	}
}

// A person who types into it is told to write JSON-RPC messages.
func TestMCPOfAPerson(t *testing.T) {
	t.Parallel()
	p := startProgram(t, t.TempDir(), "sh", "-c", program(t)+" migrate up && echo help | "+program(t)+" mcp")
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.says(`"code":-32700,"message":"the line is not JSON: write one JSON-RPC message per line`)
}

// An assistant that asks why a pipeline is stuck finds the pipeline by its name.
func TestMCPByName(t *testing.T) {
	t.Parallel()
	dir, weaver := t.TempDir(), program(t)
	store := "sqlite:" + filepath.Join(dir, "weaver.db")
	file := filepath.Join(dir, "nightly.yaml")
	if err := os.WriteFile(file, []byte("name: nightly\ntasks: {fetch: {run: \"head -c 3000000 /dev/zero | tr '\\\\0' x; echo END; exit 3\"}, gate: {approve: Go on?}}\nbudget: {max_attempts_per_task: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(weaver, "--store", store, "run", file)
	cmd.Dir = dir
	_ = cmd.Run() // it fails, and waits
	serve := exec.Command(weaver, "mcp", "--show-payloads", "--store", store)
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: serve}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cs.Close() }()
	for _, c := range []struct {
		tool string
		args map[string]any
		want []string
		bad  bool
	}{
		{"list_jobs", nil, []string{`"name":"nightly"`, `"tasks":2`, `"failed":1`}, false},
		{"list_jobs", map[string]any{"name": "nightli"}, []string{`"items":[]`, `did you mean \"nightly\"?`}, false},
		{"list_jobs", map[string]any{"states": []string{"runing"}}, []string{`(did you mean "running"?)`}, true},
		{"why", map[string]any{"id": "nightly/gate"}, []string{"Go on?"}, false},
		{"why", map[string]any{"id": "nightli"}, []string{"did you mean", "nightly"}, true},
		{"show_task", map[string]any{"id": "nightly/fetsh"}, []string{"did you mean", "fetch"}, true},
		{"list_tasks", map[string]any{"job": "nightly"}, []string{`"node":"fetch"`, `"node":"gate"`}, false},
		{"list_tasks", map[string]any{"types": []string{"weaver.exec.rum.v1"}}, []string{`did you mean \"weaver.exec.run.v1\"?`}, false},
		{"list_tasks", map[string]any{"states": []string{"faild"}}, []string{`did you mean "failed"?`}, true},
		{"list_task", nil, []string{`there is no tool "list_task" (did you mean "list_tasks"?)`}, true},
		{"why", map[string]any{"idd": "nightly"}, []string{`why has no argument "idd" (did you mean "id"?)`}, true},
		{"why", nil, []string{"why needs the argument id"}, true},
		{"why", map[string]any{"id": 5}, []string{"id: want a string, and it is a JSON number"}, true},
		{"list_jobs", map[string]any{"states": "running"}, []string{"states: want an array of the right values, and it is a JSON string"}, true},
		{"why", map[string]any{"id": "nightli/gate"}, []string{"did you mean nightly/gate?"}, true},
		{"why", map[string]any{"id": "nightly"}, []string{"gate is blocked: Go on?; fetch failed: exit status 3", `Task "fetch"`, " task retry "}, false},
		{"retry", map[string]any{"id": "nightly"}, []string{`this server has no tool "retry"`, "--allow-writes"}, true},
		{"logs", map[string]any{"id": "nightly/fetch"}, []string{"xxxx", "END", " bytes before this are left out"}, false},
	} {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			t.Fatalf("%s: %v", c.tool, err)
		}
		answer := res.Content[0].(*mcp.TextContent).Text
		for _, want := range c.want {
			if res.IsError != c.bad || !strings.Contains(answer, want) {
				t.Errorf("%s %v: %v %.500s, want %q", c.tool, c.args, res.IsError, answer, want)
			}
		}
		if c.tool == "logs" && (len(answer) < 60<<10 || !strings.Contains(answer, "(2934468 bytes before")) {
			t.Errorf("of the logs there are %d bytes: %.100s", len(answer), answer)
		}
	}
}
