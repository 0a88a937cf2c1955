package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
)

// eventStream is an open stream of events.
type eventStream struct {
	*testing.T
	scan  *bufio.Scanner
	close func()
}

// sse is one frame of the stream.
type sse struct {
	name, id string
	data     map[string]any
}

// follow opens a stream of events.
func (s *server) follow(path string, headers ...string) *eventStream {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/events"+path, http.NoBody)
	s.no(err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.http.Do(r)
	s.no(err)
	if res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != "no-store, no-transform" {
		s.Fatalf("the stream %s is answered with %s, %v", path, res.Status, res.Header)
	}
	e := &eventStream{s.T, bufio.NewScanner(res.Body), func() { cancel(); _ = res.Body.Close() }}
	e.scan.Buffer(nil, 1<<20)
	s.Cleanup(e.close)
	return e
}

// next reads the next event.
func (e *eventStream) next() (f sse) {
	e.Helper()
	for e.scan.Scan() {
		name, value, _ := strings.Cut(e.scan.Text(), ": ")
		switch name {
		case "event":
			f.name = value
		case "id":
			f.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &f.data); err != nil {
				e.Fatalf("%v: %s", err, value)
			}
		case "":
			if f.name != "" {
				return f
			}
		}
	}
	e.Fatalf("the stream ended: %v", e.scan.Err())
	return f
}

// until reads up to an event, and returns the types of the events read.
func (e *eventStream) until(last string) (types []string, id string) {
	e.Helper()
	for {
		f := e.next()
		name := fmt.Sprint(f.data["event"])
		if f.name != "message" {
			name = f.name
		}
		if types = append(types, name); name == last {
			return types, f.id
		}
	}
}

const oneLife = "[task.enqueued task.started task.succeeded]"

func TestEvents(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		s.get("/v1/events").problem(http.StatusConflict, "no-events")
		s.no(s.client.KeepEvents(t.Context(), time.Hour))
		now := s.follow("")
		first := s.enqueue()
		s.run()
		types, id := now.until("task.succeeded")
		if fmt.Sprint(types) != oneLife {
			t.Errorf("the stream says %q", types)
		}
		second := s.enqueue(order("bad"))
		s.run()
		for _, again := range []*eventStream{s.follow("?after=" + id), s.follow("?after=0", "Last-Event-ID", id)} {
			if types, _ := again.until("task.failed"); fmt.Sprint(types) != "[task.enqueued task.started task.failed]" {
				t.Errorf("resumed, it says %q", types)
			}
		}
		types, _ = s.follow("?after=0&task=" + first.String() + "&queue=billing&type=acme.*").until("task.succeeded")
		if fmt.Sprint(types) != oneLife {
			t.Errorf("of a task it says %q", types)
		}
		f := s.follow("?after=0&name=task.failed,job.*").next()
		if f.data["task_id"] != second.String() || f.data["namespace"] != "default" {
			t.Errorf("the failure is %v", f)
		}

		for _, bad := range []struct{ query, header, name string }{
			{"?after=x", "", "bad-cursor"},
			{"?after=-1", "", "bad-cursor"},
			{"", "evt-9", "bad-cursor"},
			{"", "99999999", "bad-cursor"},
			{"?task=x", "", "bad-query"},
			{"?job=x", "", "bad-query"},
			{"?since=1", "", "bad-query"},
			{"?name=task.failed,task.faild", "", "bad-query"},
			{"?after=1&after=2", "", "bad-query"},
		} {
			var headers []string
			if bad.header != "" {
				headers = []string{"Last-Event-ID", bad.header}
			}
			p := s.get("/v1/events"+bad.query, headers...).problem(http.StatusBadRequest, bad.name)
			if len(p.Errors) != 1 || bad.header != "" && p.Errors[0].Parameter != "Last-Event-ID" {
				t.Errorf("for %+v the problem is %+v", bad, p)
			}
		}

		s.no(s.client.KeepEvents(t.Context(), 0))
		s.no(s.client.KeepEvents(t.Context(), time.Hour))
		s.enqueue()
		e := s.follow("?after=" + id)
		if gap := e.next(); gap.name != "gap" || gap.data["from"] != id || gap.data["to"] != gap.id {
			t.Errorf("the gap is %+v", gap)
		}
		if f := e.next(); f.data["event"] != "task.enqueued" {
			t.Errorf("behind the gap comes %+v", f)
		}
	})
}

// An event of a deleted task says that the task was deleted, without values for the missing parts.
func TestEventsOfDeletedTasks(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		s.no(s.client.KeepEvents(t.Context(), time.Hour))
		id := s.enqueue(order("bad"))
		s.run()
		before := s.follow("?after=0&name=task.failed").next()
		if e, _ := before.data["error"].(map[string]any); e["message"] == "" || before.data["duration_ns"] == nil || before.data["problem"] != nil {
			t.Errorf("before, the event is %+v", before)
		}
		s.no(s.client.Delete(t.Context(), id))
		after := s.follow("?after=0&name=task.failed").next()
		_, failure := after.data["error"]
		_, took := after.data["duration_ns"]
		if failure || took || after.id != before.id || after.data["problem"] != "the task was deleted" || after.data["task_id"] != id.String() || after.data["timestamp"] != before.data["timestamp"] {
			t.Errorf("when the task is deleted, the event is %+v", after)
		}
	})
}

// Without the access payloads the handlers' data in events is hidden.
func TestEventsHidePayloads(t *testing.T) {
	t.Parallel()
	var may httpapi.Access
	s := newServer(t, serverOptions{config: func(cfg *httpapi.Config) {
		cfg.Authorize = func(*http.Request) (httpapi.Principal, error) {
			return httpapi.Principal{Name: "ann", Access: may}, nil
		}
	}})
	s.no(s.client.KeepEvents(t.Context(), time.Hour))
	talk := weaver.Define[string, string]("acme.feed.talk.v1")
	_, err := talk.Enqueue(t.Context(), s.client, "x")
	s.no(err)
	eng, err := weaver.New(s.store, weaver.Config{Logger: slog.New(slog.DiscardHandler), Plugins: []weaver.Plugin{weaver.PersistLogs(), weaver.PersistEvents()}, Handlers: []weaver.Handler{
		talk.Handler(func(ctx context.Context, in string) (string, error) {
			weaver.Log(ctx).Info("at work", "iban", "DE-1")
			return in, weaver.Emit(ctx, "tokens", "DE-2")
		}),
	}})
	s.no(err)
	s.no(eng.RunUntilIdle(t.Context()))
	read := func() string {
		e := s.follow("?after=0")
		var all []any
		for {
			f := e.next()
			if all = append(all, f.data); f.data["event"] == "task.succeeded" {
				e.close()
				raw, err := json.Marshal(all)
				s.no(err)
				return string(raw)
			}
		}
	}
	may = httpapi.Read | httpapi.Payloads
	if text := read(); !strings.Contains(text, "DE-1") || !strings.Contains(text, "at work") || !strings.Contains(text, "DE-2") {
		t.Errorf("with the access it says %s", text)
	}
	may = httpapi.Read
	if text := read(); strings.Contains(text, "DE-") || strings.Contains(text, "at work") || strings.Count(text, `"payloads_hidden":true`) != 2 {
		t.Errorf("without the access it says %s", text)
	}
	may = httpapi.Submit
	s.get("/v1/events").problem(http.StatusForbidden, "forbidden")
}
