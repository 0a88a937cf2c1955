package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/mcpserver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

type card struct {
	Number string `json:"number" weaver:"redact"`
	Note   string `json:"note"`
}

var pay = weaver.Define[card, weaver.None]("acme.bank.pay.v1", weaver.NoRetry())

// config returns a Config whose store has one failed task.
func config(t *testing.T) (mcpserver.Config, task.ID) {
	t.Helper()
	st := memstore.New()
	eng, err := weaver.New(st, weaver.Config{Handlers: []weaver.Handler{pay.Handler(func(_ context.Context, c card) (weaver.None, error) {
		return weaver.None{}, errors.New("the bank is closed")
	})}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := pay.Enqueue(t.Context(), eng, card{"4111-22", "visible"})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return mcpserver.Config{
		Client: eng.Client,
		Why:    func(_ context.Context, id task.ID) (string, error) { return "because of " + id.String(), nil },
		Logs: func(context.Context, task.ID, int) (string, int64, error) {
			return strings.Repeat("an early line\n", 10_000) + "the last line\n", 0, nil
		},
		Types: func(context.Context) ([]string, error) { return []string{pay.Name()}, nil },
		Draft: func(_ context.Context, name string, input json.RawMessage, opts ...weaver.EnqueueOption) (weaver.Draft, error) {
			if name != pay.Name() {
				return weaver.Draft{}, mcpserver.Said(fmt.Errorf("%s is no task type: list_types lists them", name))
			}
			return pay.WithJSON(input, opts...), nil
		},
	}, h.ID()
}

func connect(t *testing.T, c mcpserver.Config) *mcp.ClientSession {
	t.Helper()
	s, err := mcpserver.New(c)
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	return dial(t, here)
}

func dial(t *testing.T, to mcp.Transport) *mcp.ClientSession {
	t.Helper()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// call returns the answer of a tool and reports whether it is an error.
func call(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) (string, bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

func names(t *testing.T, cs *mcp.ClientSession) []string {
	t.Helper()
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
	}
	slices.Sort(got)
	return got
}

var reads = []string{"counts", "list_jobs", "list_limits", "list_schedules", "list_tasks", "list_types", "logs", "show_schedule", "show_task", "undo_plan", "why"}

func TestReadOnlyByDefault(t *testing.T) {
	t.Parallel()
	c, id := config(t)
	cs := connect(t, c)
	if got := names(t, cs); !slices.Equal(got, reads) {
		t.Errorf("tools %q, want %q", got, reads)
	}
	if answer, isError := call(t, cs, "retry", map[string]any{"id": id.String(), "reason": "x"}); !isError || !strings.Contains(answer, `this server has no tool "retry"`) || !strings.Contains(answer, "--allow-writes") {
		t.Errorf("retry is there: %s", answer)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	c, id := config(t)
	cs := connect(t, c)
	one := map[string]any{"id": id.String()}
	for _, x := range []struct {
		tool  string
		args  map[string]any
		want  string
		wrong bool
	}{
		{"counts", nil, `"failed":{"n":1}`, false},
		{"list_tasks", map[string]any{"states": []string{"failed"}}, id.String(), false},
		{"list_tasks", map[string]any{"states": []string{"ready"}}, `"items":[]`, false},
		{"list_tasks", map[string]any{"states": []string{"broken"}}, `unknown state "broken"; the states are`, true},
		{"list_tasks", map[string]any{"limit": 101}, "limit 101: want 1 to 100", true},
		{"list_tasks", map[string]any{"limit": -1}, "limit -1: want 1 to 100", true},
		{"list_tasks", map[string]any{"after": "nonsense"}, "cursor", true},
		{"show_task", one, "the bank is closed", false},
		{"show_task", map[string]any{"id": "nonsense"}, `id "nonsense": not an id`, true},
		{"show_task", map[string]any{"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "list_tasks lists the tasks", true},
		{"why", one, "because of " + id.String(), false},
		{"undo_plan", one, `"state":"failed","to_undo":0,"effects":[]}`, false},
		{"undo_plan", map[string]any{"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "list_tasks lists the tasks", true},
		{"list_types", nil, pay.Name(), false},
		{"logs", one, "start the server with --show-payloads", true},
	} {
		if got, wrong := call(t, cs, x.tool, x.args); wrong != x.wrong || !strings.Contains(got, x.want) {
			t.Errorf("%s %v: %s, error %t; want %q", x.tool, x.args, got, wrong, x.want)
		}
	}
}

// Every tool refuses arguments with texts that no store accepts, and names the argument.
func TestTextsAreChecked(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	c.AllowWrites = true
	cs := connect(t, c)
	for tool, args := range map[string]map[string]any{
		"list_tasks": {"queue": "a\x00"}, "show_task": {"id": "\x00"}, "cancel": {"id": "x", "reason": "\x00"},
	} {
		if got, wrong := call(t, cs, tool, args); !wrong || !strings.Contains(got, "contains a NUL byte") {
			t.Errorf("%s %v: %s, error %t", tool, args, got, wrong)
		}
	}
	if got, wrong := call(t, cs, "list_tasks", map[string]any{"labels": map[string]any{"a": "\x00"}}); !wrong || !strings.Contains(got, "labels: ") {
		t.Errorf("labels: %s, error %t", got, wrong)
	}
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	c, id := config(t)
	one := map[string]any{"id": id.String()}
	for _, tool := range []string{"show_task", "list_tasks"} {
		args := one
		if tool == "list_tasks" {
			args = nil
		}
		if got, _ := call(t, connect(t, c), tool, args); strings.Contains(got, "visible") || strings.Contains(got, "4111-22") {
			t.Errorf("%s shows values: %s", tool, got)
		}
	}
	c.ShowPayloads = true
	cs := connect(t, c)
	if got, _ := call(t, cs, "show_task", one); !strings.Contains(got, "visible") || strings.Contains(got, "4111-22") {
		t.Errorf("with payloads: %s", got)
	}
	got, _ := call(t, cs, "logs", one)
	if len(got) > 65<<10 || !strings.HasSuffix(got, "the last line\n") || !strings.Contains(got, "bytes before this are left out: `weaver logs") {
		t.Errorf("logs of %d bytes begin %.100q", len(got), got)
	}
}

// A retry of a task whose cleanup ran is refused with a suggestion.
func TestRetryAfterCleanup(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	st := memstore.New()
	eng, err := weaver.New(st, weaver.Config{Handlers: []weaver.Handler{pay.Handler(func(ctx context.Context, _ card) (weaver.None, error) {
		return weaver.None{}, errors.Join(errors.New("no"), weaver.Cleanup(ctx, "refund", func(context.Context) error { return nil }))
	})}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := pay.Enqueue(t.Context(), eng, card{})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Client, c.AllowWrites = eng.Client, true
	cs := connect(t, c)
	args := map[string]any{"id": h.ID().String(), "reason": "it is open"}
	if got, wrong := call(t, cs, "retry", args); !wrong || !strings.Contains(got, `its cleanup "refund" ran`) || !strings.Contains(got, "rerun it") {
		t.Errorf("retry: %s", got)
	}
	args["keep_steps"] = true
	if got, wrong := call(t, cs, "retry", args); wrong || !strings.Contains(got, `"state":"ready"`) || !strings.Contains(got, `"state":"completed","past":true`) {
		t.Errorf("retry with keep_steps: %s", got)
	}
}

// A failed undo can be retried or abandoned.
func TestUndoVerbs(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	eng, err := weaver.New(memstore.New(), weaver.Config{Handlers: []weaver.Handler{pay.Handler(func(ctx context.Context, _ card) (weaver.None, error) {
		return weaver.None{}, weaver.Cleanup(ctx, "refund", func(context.Context) error { return weaver.Permanent(errors.New("no such account")) })
	})}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := pay.Enqueue(t.Context(), eng, card{})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Client, c.AllowWrites = eng.Client, true
	cs := connect(t, c)
	args := func(more string) map[string]any {
		return map[string]any{"id": h.ID().String(), "reason": "the bank called", more: true}
	}
	if got, wrong := call(t, cs, "retry", args("keep_steps")); !wrong || !strings.Contains(got, "its undo was given up") {
		t.Errorf("retry: %s", got)
	}
	if got, wrong := call(t, cs, "retry", args("cleanup")); wrong || !strings.Contains(got, `"state":"pending","waiting":"undo"`) {
		t.Errorf("retry with cleanup: %s", got)
	}
	if got, wrong := call(t, cs, "cancel", args("abandon_undo")); wrong || !strings.Contains(got, "undo given up: abandoned by mcp: the bank called") {
		t.Errorf("cancel with abandon_undo: %s", got)
	}
}

// The plan of an undo contains no values and states its omissions.
func TestUndoPlan(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	eng, err := weaver.New(memstore.New(), weaver.Config{Handlers: []weaver.Handler{pay.Handler(func(ctx context.Context, _ card) (weaver.None, error) {
		for i := range 60 {
			if err := weaver.Do(ctx, fmt.Sprint("mail ", i), func(context.Context) error { return nil }); err != nil {
				return weaver.None{}, err
			}
		}
		_, err := weaver.Step(ctx, "charge", func(context.Context) (card, error) {
			return card{Number: "4111-22", Note: "visible"}, errors.New("timed out")
		},
			weaver.Undo(func(context.Context, weaver.Undoing[card]) error {
				return weaver.Permanent(errors.New("no such account"))
			}))
		return weaver.None{}, err
	})}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := pay.Enqueue(t.Context(), eng, card{})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Client, c.ShowPayloads = eng.Client, true
	got, wrong := call(t, connect(t, c), "undo_plan", map[string]any{"id": h.ID().String()})
	for _, part := range []string{
		`"state":"failed","ends_as":"failed","to_undo":1,"effects":[{"step":"charge","kind":"step","effect":"unknown","undo":"given_up","tries":1,"error":"handler_error: no such account","key":"` + h.ID().String() + `:charge"`,
		`{"step":"mail 59","kind":"step","effect":"confirmed","undo":"none"`, "11 more effects are left out: `weaver why " + h.ID().String() + " --undo`",
	} {
		if wrong || !strings.Contains(got, part) {
			t.Errorf("the plan lacks %s: %s", part, got)
		}
	}
	if strings.Contains(got, "visible") {
		t.Errorf("the plan has a value: %s", got)
	}
}

func TestWrites(t *testing.T) {
	t.Parallel()
	c, id := config(t)
	c.AllowWrites = true
	cs := connect(t, c)
	if got, wrong := call(t, cs, "retry", map[string]any{"id": id.String(), "reason": ""}); !wrong || !strings.Contains(got, "say why") {
		t.Errorf("without a reason: %s", got)
	}
	if got, wrong := call(t, cs, "retry", map[string]any{"id": id.String(), "reason": "it is open"}); wrong || !strings.Contains(got, `"state":"ready"`) {
		t.Errorf("retry: %s", got)
	}
	if got, wrong := call(t, cs, "unblock", map[string]any{"id": id.String(), "reason": "x", "input": true}); !wrong || !strings.Contains(got, "why explains the state of the task") {
		t.Errorf("unblock: %s", got)
	}
	if got, wrong := call(t, cs, "cancel", map[string]any{"id": id.String(), "reason": "no"}); wrong || !strings.Contains(got, `"state":"cancelled"`) {
		t.Errorf("cancel: %s", got)
	}
	h, err := c.Client.History(t.Context(), id)
	if err != nil || len(h.Audit) != 2 || h.Audit[0].Actor != "mcp" || h.Audit[1].Actor != "mcp" {
		t.Errorf("audit %+v, %v", h.Audit, err)
	}
	in := map[string]any{"type": pay.Name(), "input": map[string]any{"note": "new"}, "idempotency_key": "k"}
	for _, want := range []string{"created", "existing"} {
		if got, wrong := call(t, cs, "enqueue", in); wrong || !strings.Contains(got, want) {
			t.Errorf("enqueue: %s, want %s", got, want)
		}
	}
	if got, wrong := call(t, cs, "enqueue", map[string]any{"type": "acme.bank.other.v1"}); !wrong || !strings.Contains(got, "list_types lists them") {
		t.Errorf("enqueue: %s", got)
	}
}

// Over HTTP each request is authorized separately.
func TestHandler(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	srv := httptest.NewServer(mcpserver.Handler(func(r *http.Request) (mcpserver.Config, error) {
		switch r.URL.Path {
		case "/write":
			c := c
			c.AllowWrites = true
			return c, nil
		case "/read":
			return c, nil
		case "/down":
			return c, errors.New("secret detail")
		}
		return mcpserver.Config{}, fmt.Errorf("no token: %w", mcpserver.ErrDenied)
	}))
	t.Cleanup(srv.Close)
	if got := names(t, dial(t, &mcp.StreamableClientTransport{Endpoint: srv.URL + "/read"})); !slices.Equal(got, reads) {
		t.Errorf("read: %q", got)
	}
	if got := names(t, dial(t, &mcp.StreamableClientTransport{Endpoint: srv.URL + "/write"})); len(got) != len(reads)+10 {
		t.Errorf("write: %q", got)
	}
	for path, want := range map[string]int{"/none": http.StatusUnauthorized, "/down": http.StatusServiceUnavailable} {
		res, err := http.Post(srv.URL+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
		_ = res.Body.Close()
	}
	for size, want := range map[int]int{7 << 20: http.StatusOK, 9 << 20: http.StatusRequestEntityTooLarge} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"why","arguments":{"id":"` + strings.Repeat("x", size) + `"}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/read", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", size, res.StatusCode, want)
		}
		_ = res.Body.Close()
	}
}

// Numbers reach the store with all their digits.
func TestNumbersStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	c, _ := config(t)
	c.AllowWrites = true
	ask := weaver.Define[json.RawMessage, weaver.None]("acme.bank.ask.v1")
	c.Draft = func(_ context.Context, _ string, input json.RawMessage, opts ...weaver.EnqueueOption) (weaver.Draft, error) {
		return ask.WithJSON(input, opts...), nil
	}
	st := memstore.New()
	eng, err := weaver.New(st, weaver.Config{Handlers: []weaver.Handler{ask.Handler(func(context.Context, json.RawMessage) (weaver.None, error) {
		return weaver.None{}, weaver.Blocked("look at it")
	})}})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = eng.Client
	cs := connect(t, c)
	send := func(tool, args string) string {
		t.Helper()
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
		if err != nil || res.IsError {
			t.Fatalf("%s %s: %+v, %v", tool, args, res, err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	const value = `{"a":[12345678901234567890,-9007199254740993],"b":0.1000000000000000055511151231257827,"c":1.0}`
	var got struct{ ID string }
	if err := json.Unmarshal([]byte(send("enqueue", `{"type":"acme.bank.ask.v1","input":`+value+`}`)), &got); err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	send("unblock", `{"id":"`+got.ID+`","reason":"seen","input":`+value+`}`)
	id, err := task.ParseID(got.ID)
	if err != nil {
		t.Fatal(err)
	}
	is, err := c.Client.Get(t.Context(), id)
	if err != nil || string(is.Input) != value || string(is.UnblockInput) != value {
		t.Errorf("of %s are left the input %s and the answer %s (%v)", value, is.Input, is.UnblockInput, err)
	}
}

// An error of the store is answered by its name, if it has one, and logged: its text may name folders and hosts.
func TestFailuresAreNotShown(t *testing.T) {
	t.Parallel()
	c, id := config(t)
	var log bytes.Buffer
	c.Logger, c.AllowWrites = slog.New(slog.NewTextHandler(&log, nil)), true
	var fails error
	c.Why = func(context.Context, task.ID) (string, error) { return "", fails }
	cs := connect(t, c)
	for _, x := range []struct {
		err    error
		want   string
		hidden bool
	}{
		{errors.New("open /srv/secret.db: SQL logic error"), "the server failed: its log has the reason", true},
		{fmt.Errorf("dial secret@db: %w", store.ErrUnavailable), store.ErrUnavailable.Error() + ": the server's log says more", true},
		{mcpserver.Said(fmt.Errorf("dial secret@db: %w", store.ErrFull)), store.ErrFull.Error(), true},
		{fmt.Errorf("job secret: %w", weaver.ErrNotFound), "job secret: ", false},
		{fmt.Errorf("input secret: %w", weaver.ErrTooLarge), "input secret: ", false},
		{fmt.Errorf("why: %w", mcpserver.Said(errors.New("ask for secret"))), "why: ask for secret", false},
	} {
		log.Reset()
		fails = x.err
		got, wrong := call(t, cs, "why", map[string]any{"id": id.String()})
		if !wrong || !strings.Contains(got, x.want) || strings.Contains(got, "secret") == x.hidden || strings.Contains(log.String(), "secret") != x.hidden {
			t.Errorf("%v: answered with %q, logged %q", x.err, got, log.String())
		}
	}
}
