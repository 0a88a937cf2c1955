package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// says is a task that logs and streams.
var says = weaver.Define[chargeIn, string]("acme.test.says.v1", weaver.NoRetry())

// said runs a task of says on an engine that stores its lines and events.
func (s *server) said() weaver.TaskID {
	s.Helper()
	h, err := says.Enqueue(s.Context(), s.client, chargeIn{Order: "o-7", Card: "4929-1234"})
	s.no(err)
	e, err := weaver.New(s.store, weaver.Config{
		Plugins: []weaver.Plugin{weaver.PersistLogs(), weaver.PersistEvents()},
		Handlers: []weaver.Handler{says.Handler(func(ctx context.Context, in chargeIn) (string, error) {
			weaver.Log(ctx).Info("pays "+in.Order, "card", in.Card, "till", 3)
			got, err := weaver.Step(ctx, "pay", func(context.Context) (string, error) { return "step gave this", nil })
			return got, errors.Join(err, weaver.Emit(ctx, "out", "chunk of text"))
		})},
	})
	s.no(err)
	s.no(e.RunUntilIdle(s.Context()))
	return h.ID()
}

// eventLine holds the compared fields of an event.
type eventLine struct {
	Event    string          `json:"event"`
	Sequence int64           `json:"sequence"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	Hidden   bool            `json:"payloads_hidden"`
}

// The events of a task are returned in pages, each once and in order, for any page size.
func TestTaskEvents(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		id := s.said()
		at := "/v1/tasks/" + id.String() + "/events"
		read := func(limit int) (names []string) {
			for after := ""; ; {
				var page httpapi.Page[eventLine]
				s.get(fmt.Sprintf("%s?limit=%d&after=%s", at, limit, after)).want(http.StatusOK).into(&page)
				for _, e := range page.Items {
					names = append(names, e.Event)
				}
				if after = page.Next; after == "" || len(names) > 100 {
					return names
				}
			}
		}
		want := "task.enqueued task.started log.written step.started step.completed stream.chunk task.succeeded"
		for _, limit := range []int{1, 2, 3, 1000} {
			if got := strings.Join(read(limit), " "); got != want {
				t.Errorf("in pages of %d: %s, want %s", limit, got, want)
			}
		}
		s.get(at+"?after=x").problem(http.StatusBadRequest, "bad-cursor")
		s.get(at+"?after=-1").problem(http.StatusBadRequest, "bad-cursor")
		s.get(at+"?limit=1001").problem(http.StatusBadRequest, "bad-query")
		s.get("/v1/tasks/"+task.NewIDs(nil).New().String()+"/events").problem(http.StatusNotFound, "not-found")
	})
}

// Values are returned to principals with the access payloads only, and masked for all.
func TestTaskEventsHideValues(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{config: func(c *httpapi.Config) {
		c.Authorize = tokensOf(t, "reader read "+hashOf("r"), "all full "+hashOf("a")).Authorize
	}})
	id := s.said().String()
	all := s.get("/v1/tasks/"+id+"/events", "Authorization", "Bearer a").want(http.StatusOK)
	for _, secret := range []string{"o-7", "chunk of text", "step gave this"} {
		if !strings.Contains(string(all.body), secret) {
			t.Errorf("with the access %q is not there: %s", secret, all.body)
		}
	}
	some := s.get("/v1/tasks/"+id+"/events", "Authorization", "Bearer r").want(http.StatusOK)
	for _, secret := range []string{`"order"`, "chunk of text", "step gave this", `"till"`} {
		if strings.Contains(string(some.body), secret) {
			t.Errorf("without the access %q is there: %s", secret, some.body)
		}
	}
	if strings.Contains(string(all.body)+string(some.body), "4929-") {
		t.Errorf("a masked value is shown: %s", all.body)
	}
	var page httpapi.Page[eventLine]
	if some.into(&page); !page.Items[0].Hidden || page.Items[0].Event != "task.enqueued" {
		t.Errorf("that values are hidden is not said: %s", some.body)
	}
	s.get("/v1/tasks/"+id+"/logs", "Authorization", "Bearer r").problem(http.StatusForbidden, "forbidden")
}

// Stored lines are returned as text; the tail is requested by its size.
func TestStoredLogs(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		at := "/v1/tasks/" + s.said().String() + "/logs"
		a := s.get(at).want(http.StatusOK)
		lines := strings.Split(string(a.body), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], " INFO pays o-7") || !strings.Contains(lines[0], "till=3") || !strings.HasSuffix(lines[1], "out| chunk of text") ||
			strings.Contains(lines[0], "4929-") || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("the logs: %q, %v", a.body, a.header)
		}
		if tail := s.get(fmt.Sprintf("%s?attempt=1&tail=%d", at, len(lines[1])+5)).want(http.StatusOK); string(tail.body) != lines[1]+"\n" {
			t.Errorf("the end: %q", tail.body)
		}
		s.get(at+"?attempt=2").problem(http.StatusNotFound, "not-found")
		for _, query := range []string{"attempt=0", "attempt=x", "tail=0", "tail=-1", "tail=1048577"} {
			s.get(at+"?"+query).problem(http.StatusBadRequest, "bad-query")
		}
		s.get("/v1/tasks/"+s.enqueue().String()+"/logs").problem(http.StatusNotFound, "not-found")
		s.get("/v1/tasks/"+task.NewIDs(nil).New().String()+"/logs").problem(http.StatusNotFound, "not-found")
	})
}

// breaks is a log whose read fails before its end.
type breaks struct{ io.Reader }

func (b breaks) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, errors.New("the disk is gone: /secret/path")
}
func (breaks) Close() error { return nil }

// The output of commands is returned unchanged, from where the program keeps it.
func TestCommandLogs(t *testing.T) {
	t.Parallel()
	var command weaver.TaskID
	written := func(attempt int) string { return fmt.Sprintf("attempt %d\x1b[31m\x00\xff\n", attempt) }
	s := newServer(t, serverOptions{config: func(c *httpapi.Config) {
		c.CommandLogs = func(t *task.Task, attempt int) (io.ReadCloser, error) {
			switch {
			case t.ID != command:
				return nil, fs.ErrNotExist
			case t.Queue == "broken":
				return breaks{strings.NewReader(strings.Repeat("x", attempt-1))}, nil
			}
			return io.NopCloser(strings.NewReader(written(attempt))), nil
		}
	}})
	command = s.enqueue(order("bad"))
	at := "/v1/tasks/" + command.String() + "/logs"
	s.get(at).problem(http.StatusNotFound, "not-found") // it has not begun
	s.run()
	s.verb(command, "retry", `{}`, weaver.StateReady)
	s.run()
	if a := s.get(at).want(http.StatusOK); string(a.body) != written(2) {
		t.Errorf("the last attempt: %q", a.body)
	}
	if a := s.get(at + "?attempt=1").want(http.StatusOK); string(a.body) != written(1) {
		t.Errorf("the first attempt: %q", a.body)
	}
	s.get(at+"?attempt=3").problem(http.StatusNotFound, "not-found")
	if !s.features()["command_logs"] {
		t.Error("the features do not tell of the logs")
	}

	command = s.enqueue(order("bad"), func(d *httpapi.Draft) { d.Queue = "broken" })
	s.run()
	at = "/v1/tasks/" + command.String() + "/logs"
	if a := s.get(at); strings.Contains(string(a.problem(http.StatusInternalServerError, "internal").Detail), "secret") {
		t.Errorf("the problem tells too much: %s", a.body)
	}
	s.verb(command, "retry", `{}`, weaver.StateReady)
	s.run()
	res, err := http.Get(s.url + at)
	if err == nil {
		if body, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("a log that breaks off came as whole: %q", body)
		}
		_ = res.Body.Close()
	}
}

func (s *server) features() map[string]bool {
	s.Helper()
	var f httpapi.Features
	s.get("/v1/features").want(http.StatusOK).into(&f)
	return f.Features
}
