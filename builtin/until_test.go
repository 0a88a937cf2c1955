package builtin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/weavertest"
)

// turns answers each request with its next answer, and repeats the last one.
func turns(answers ...http.HandlerFunc) *visits {
	n := 0
	return &visits{answer: func(w http.ResponseWriter, r *http.Request) {
		a := answers[min(n, len(answers)-1)]
		n++
		a(w, r)
	}}
}

func done(every time.Duration) *builtin.Until {
	return &builtin.Until{JSON: ".status", Equals: json.RawMessage(`"done"`), Every: builtin.Duration(every)}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	const url = "http://a.test/job"
	running, ready := saying(`{"status": "running"}`), saying(`{"status": "done", "rows": 7}`)
	for name, every := range map[string]time.Duration{"in place": 0, "asleep between polls": time.Minute} {
		webCase(t, "polls until the answer is the one, "+name, func(w *webFixture) {
			v := turns(running, status(503), hangUp(""), saying("no JSON"), running, ready)
			w.serve("a.test", v.serve)
			out := w.run(builtin.RequestInput{URL: url, Method: "POST", Until: done(every)}, weaver.NoRetry())
			if out.Status != 200 || out.Body != `{"status": "done", "rows": 7}` {
				w.Errorf("the output is %+v", out)
			}
			seen := v.all()
			if len(seen) != 6 || seen[0].header.Get("Idempotency-Key") != "" {
				w.Fatalf("%d requests, the first with %v", len(seen), seen[0].header)
			}
			if pause, want := seen[1].at.Sub(seen[0].at), max(every, 5*time.Second); pause < want || pause > want+2*time.Second {
				w.Errorf("the pause is %s, want %s", pause, want)
			}
		})
	}
	webCase(t, "an attempt that sleeps uses no slot and no attempt", func(w *webFixture) {
		w.serve("a.test", turns(running, running, ready).serve)
		e, stop := w.engine()
		h, err := builtin.Request.Enqueue(w.Context(), e, builtin.RequestInput{URL: url, Until: done(time.Minute)}, weaver.NoRetry())
		if err != nil {
			w.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if got, err := e.Get(w.Context(), h.ID()); err != nil || got.State != weaver.StatePending {
			w.Errorf("between two polls the task is %s, %v", got.State, err)
		}
		if _, err := h.Wait(w.Context()); err != nil {
			w.Error(err)
		}
		if got, _ := e.Get(w.Context(), h.ID()); got.AttemptCount != 1 {
			w.Errorf("%d attempts count, want 1", got.AttemptCount)
		}
		stop()
	})
	for name, every := range map[string]time.Duration{"in place": 5 * time.Second, "asleep": time.Minute} {
		webCase(t, "survives that its process dies after every step, "+name, func(w *webFixture) {
			w.serve("a.test", turns(running, running, running, ready).serve)
			weavertest.Replay(w.T, w.env, builtin.Request, builtin.RequestInput{URL: url, Until: done(every)})
		})
		webCase(t, "its limit counts from the first poll, also while no worker runs, "+name, func(w *webFixture) {
			v := turns(running)
			w.serve("a.test", v.serve)
			e, stop := w.engine()
			h, err := builtin.Request.Enqueue(w.Context(), e, builtin.RequestInput{URL: url, Until: done(every)})
			if err != nil {
				w.Fatal(err)
			}
			time.Sleep(30 * time.Minute) // at the time of a poll
			e.StopNow()
			stop()
			time.Sleep(time.Hour)
			before := len(v.all())
			e, stop = w.engine()
			if _, err := builtin.Request.Wait(w.Context(), e, h.ID()); err == nil || !strings.Contains(err.Error(), "within 1h") {
				w.Errorf("the poll ended with %v", err)
			}
			if n := len(v.all()) - before; n != 1 {
				w.Errorf("%d more polls, want 1", n)
			}
			stop()
		})
	}
	for name, every := range map[string]time.Duration{"in place": 5 * time.Second, "asleep": 10 * time.Minute} {
		webCase(t, "ends when its time is over, for good, "+name, func(w *webFixture) {
			v := turns(running)
			w.serve("a.test", v.serve)
			w.fails(1, builtin.RequestInput{URL: url, Until: done(every)},
				`GET http://a.test/job: it waits for .status = "done", which did not come within 1h; the last poll: 200, .status = "running"`)
			seen := v.all()
			if took := seen[len(seen)-1].at.Sub(seen[0].at); took > time.Hour || took < time.Hour-2*every {
				w.Errorf("the polls went on for %s", took)
			}
		})
	}
	webCase(t, "a retry after that begins anew", func(w *webFixture) {
		v := turns(running)
		w.serve("a.test", v.serve)
		e, stop := w.engine()
		h, err := builtin.Request.Enqueue(w.Context(), e, builtin.RequestInput{URL: url, Until: done(10 * time.Minute)})
		if err != nil {
			w.Fatal(err)
		}
		for range 3 {
			before := len(v.all())
			if _, err := h.Wait(w.Context()); err == nil || !strings.Contains(err.Error(), "within 1h") {
				w.Fatalf("the poll ended with %v", err)
			}
			if n := len(v.all()) - before; n < 6 {
				w.Errorf("%d polls, want one every 10 minutes", n)
			}
			if err := e.Retry(w.Context(), h.ID()); err != nil {
				w.Fatal(err)
			}
		}
		stop()
	})
	webCase(t, "an error of the network is what was seen last", func(w *webFixture) {
		w.fail("a.test:80", syscall.ECONNREFUSED)
		w.fails(1, builtin.RequestInput{URL: url, Until: done(0)}, "the last poll: GET http://a.test/job: ", "connection refused")
	})
	webCase(t, "another status fails at once", func(w *webFixture) {
		v := turns(running, status(404))
		w.serve("a.test", v.serve)
		w.fails(1, builtin.RequestInput{URL: url, Until: done(0)}, "GET http://a.test/job: 404 Not Found")
		if n := len(v.all()); n != 2 {
			w.Errorf("%d requests, want 2", n)
		}
	})
	webCase(t, "with status every other status is one more poll", func(w *webFixture) {
		v := turns(status(404), status(503), status(200))
		w.serve("a.test", v.serve)
		w.run(builtin.RequestInput{URL: url, Until: &builtin.Until{Status: []int{200}}}, weaver.NoRetry())
		if n := len(v.all()); n != 3 {
			w.Errorf("%d requests, want 3", n)
		}
	})
	webCase(t, "Retry-After makes a pause longer", func(w *webFixture) {
		v := turns(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(503)
		}, ready)
		w.serve("a.test", v.serve)
		w.run(builtin.RequestInput{URL: url, Until: done(0)}, weaver.NoRetry())
		if seen := v.all(); seen[1].at.Sub(seen[0].at) < 2*time.Minute {
			w.Errorf("the pause was %s", seen[1].at.Sub(seen[0].at))
		}
	})
	webCase(t, "looks into a body that is longer than the output may be", func(w *webFixture) {
		long := strings.Repeat("x", 200<<10)
		w.serve("a.test", turns(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"long": "`+long+`", "status": "done"}`)
		}).serve)
		if out := w.run(builtin.RequestInput{URL: url, Until: done(0)}); !out.Truncated {
			w.Error("the output is not truncated")
		}
	})
}

// Which answers meet a condition.
func TestUntilMeets(t *testing.T) {
	t.Parallel()
	const body = `{"status": "done", "n": 1.0, "list": [{"id": 7}], "null": null, "a b": true, "o": {"x": [1]}, "id": 9007199254740993, "d": [0.12345678901234567891]}`
	raw := func(v string) json.RawMessage { return json.RawMessage(v) }
	for _, c := range []struct {
		until builtin.Until
		met   bool
	}{
		{builtin.Until{JSON: "status", Equals: raw(`"done"`)}, true},
		{builtin.Until{JSON: ".status", Equals: raw(`"Done"`)}, false},
		{builtin.Until{JSON: ".n", Equals: raw(`1`)}, true},
		{builtin.Until{JSON: ".n", Equals: raw(`"1"`)}, false},
		{builtin.Until{JSON: ".list[0].id", Equals: raw(`7`)}, true},
		{builtin.Until{JSON: ".list[1].id", Not: raw(`7`)}, false}, // there is no value
		{builtin.Until{JSON: ".list.id", Not: raw(`7`)}, false},
		{builtin.Until{JSON: ".null", Equals: raw(`null`)}, true},
		{builtin.Until{JSON: ".status", Not: raw(`"running"`)}, true},
		{builtin.Until{JSON: ".status", In: []json.RawMessage{raw(`"failed"`), raw(`"done"`)}}, true},
		{builtin.Until{JSON: `["a b"]`, Equals: raw(`true`)}, true},
		{builtin.Until{JSON: ".o", Equals: raw(`{"x": [1]}`)}, true},
		{builtin.Until{JSON: ".o", Equals: raw(`{"x": [1, 2]}`)}, false},
		{builtin.Until{JSON: ".status", Equals: raw(`"done"`), Status: []int{201}}, false},
		{builtin.Until{JSON: ".id", Equals: raw(`9007199254740993`)}, true},
		{builtin.Until{JSON: ".id", Equals: raw(`9007199254740992`)}, false},
		{builtin.Until{JSON: ".id", Not: raw(`9007199254740992`)}, true},
		{builtin.Until{JSON: ".id", In: []json.RawMessage{raw(`9007199254740992`), raw(`9007199254740994`)}}, false},
		{builtin.Until{JSON: ".d", Equals: raw(`[0.12345678901234567892]`)}, false},
	} {
		if err := c.until.Check(); err != nil {
			t.Errorf("%+v: %v", c.until, err)
		}
		if met, seen := c.until.Met(200, []byte(body)); met != c.met {
			t.Errorf("%+v: %t, seen %s", c.until, met, seen)
		}
	}
}

func TestUntilValidate(t *testing.T) {
	t.Parallel()
	yes := json.RawMessage(`"done"`)
	for _, c := range []struct {
		until builtin.Until
		says  string
	}{
		{builtin.Until{}, "does not say what is waited for"},
		{builtin.Until{Equals: yes}, "write json with its place"},
		{builtin.Until{JSON: ".a"}, "nothing says what for"},
		{builtin.Until{JSON: ".a", Equals: yes, Not: yes}, "2 of equals, not and in"},
		{builtin.Until{JSON: ".a", In: []json.RawMessage{}}, "in has no value"},
		{builtin.Until{JSON: ".a", Equals: json.RawMessage("done")}, "is not JSON"},
		{builtin.Until{JSON: "a b", Equals: yes}, `json is "a b"`},
		{builtin.Until{JSON: ".a}}{{.b", Equals: yes}, "names no value"},
		{builtin.Until{Status: []int{20}}, "20 is not a status"},
		{builtin.Until{Status: []int{200}, Every: -1}, "cannot be negative"},
		{builtin.Until{Status: []int{200}, Timeout: -1}, "cannot be negative"},
		{builtin.Until{Status: []int{200}, Every: builtin.Duration(2 * time.Hour)}, "every is 2h, and timeout 1h"},
		{builtin.Until{Status: []int{200}, Every: builtin.Duration(10 * time.Second), Timeout: builtin.Duration(24 * time.Hour)}, "8640 polls, and at most 2000"},
	} {
		in := builtin.RequestInput{URL: "http://a.test/", Until: &c.until}
		if err := in.Validate(); err == nil || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%+v: %v, want %q", c.until, err, c.says)
		}
	}
}

// An error names the condition.
func TestUntilWanted(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]builtin.Until{
		"200 or 201":                       {Status: []int{200, 201}},
		`204 and .n = "5"`:                 {Status: []int{204}, JSON: "n", Equals: json.RawMessage(`"5"`)},
		`.items[0].id in [1, "a"]`:         {JSON: ".items[0].id", In: []json.RawMessage{json.RawMessage("1"), json.RawMessage(`"a"`)}},
		`.status other than {"a": "done"}`: {JSON: ".status", Not: json.RawMessage(`{"a": "done"}`)},
	} {
		if got := builtin.Wanted(&u); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
