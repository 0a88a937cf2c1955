package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// Every action that why offers, in every state of a task or job, is a valid command. Except for starting a worker, it
// is also a valid HTTP request.
func TestActionsCanBeDone(t *testing.T) {
	t.Parallel()
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: httpapi.Open(httpapi.Principal{Name: "t", Access: httpapi.Full})})
	if err != nil {
		t.Fatal(err)
	}
	reached := make(map[explain.Target]bool)
	seen := make(map[string]bool)
	check := func(x *explain.Explanation) {
		for _, a := range x.Actions {
			if a.Verb == explain.VerbRun {
				if method, path := a.HTTP(); a.CLI() != nil || method != "" || path != "" || a.Command != "weaver worker" {
					t.Errorf("to start a worker: %q, %s %s", a.Command, method, path)
				}
				seen["run"] = true
				continue
			}
			words := a.CLI()
			if key := strings.Join(words, " "); seen[key] {
				continue
			} else if seen[key] = true; a.Command != key {
				t.Errorf("the command is %q, its words are %q", a.Command, words)
			}
			if err := cli.Parse(words...); err != nil {
				t.Errorf("why offers %q of a %s that is %s: %v", words, x.Kind, x.State, err)
			}
			method, path := a.HTTP()
			reached[explain.Target{Kind: a.Target.Kind, ID: string(a.Verb)}] = true
			// The tasks and jobs do not exist; no other error may occur.
			switch status, problem := request(t, api, &a, method, path); {
			case status == http.StatusNoContent && (a.Target.Kind == explain.TargetQueue || a.Target.Kind == explain.TargetType):
			case status == http.StatusNotFound && problem == httpapi.ProblemBase+"not-found":
			default:
				t.Errorf("why offers %s %s of a %s that is %s: %d %s", method, path, x.Kind, x.State, status, problem)
			}
			if a.NeedsInput != (a.Verb == explain.VerbSignal || a.Verb == explain.VerbRepair) {
				t.Errorf("%q needs input: %v", words, a.NeedsInput)
			}
		}
	}
	eachExplained(check)
	if want := 13; len(reached) != want {
		t.Errorf("the actions lead to %d routes, want %d: %v", len(reached), want, reached)
	}
	if !seen["run"] {
		t.Error("no action starts a worker")
	}
}

// request performs an action over HTTP and returns the status and the type of the problem.
func request(t *testing.T, api http.Handler, a *explain.Action, method, path string) (status int, problem string) {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		fields := make(map[string]any)
		raw, err := json.Marshal(a.Args)
		if err == nil {
			err = json.Unmarshal(raw, &fields)
		}
		if err != nil {
			t.Fatal(err)
		}
		if name := a.InputName(); name != "" {
			fields[name] = map[string]string{"a": "b"}
		}
		if raw, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	r := httptest.NewRequest(method, "http://localhost"+path, body)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	var p httpapi.Problem
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, p.Type
}

// eachExplained explains tasks and jobs in every state, with all facts that decide which actions are offered.
func eachExplained(do func(*explain.Explanation)) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	ids := task.NewIDs(nil)
	id, other, jobID := ids.New(), ids.New(), ids.New()
	e := explain.Explainer{Depth: 3, Command: func(args ...string) string { return strings.Join(args, " ") }, Clock: explain.Clock{Now: now, Zone: time.UTC}}
	waits := []task.Waiting{
		task.WaitNone, task.WaitDelay, task.WaitDeps, task.WaitRetry, task.WaitRepair, task.WaitManual, task.WaitBudget, task.WaitDeadline,
		task.WaitSleep, task.WaitSignal, task.WaitChildren, task.WaitConcurrency, task.WaitRate, task.WaitPaused,
	}
	kinds := []task.ErrorKind{
		task.KindNone, task.KindHandler, task.KindPanic, task.KindTimeout, task.KindDecode, task.KindValidation, task.KindBudget, task.KindJobBudget, task.KindDeadline,
		task.KindCancelled, task.KindLeaseExpired, task.KindDependencyFailed, task.KindNotNeeded, task.KindParentEnded, task.KindPoison, task.KindInternal,
	}
	spent := &task.Job{ID: jobID, State: task.JobFailed, Budget: task.Budget{MaxTotalAttempts: 3, MaxCost: 10}, AttemptsUsed: 3, Cost: 12, ExhaustedAt: now}
	tell := func(h store.History) {
		e.OfJob, e.Gone = spent, map[task.ID][]string{}
		for _, gone := range []bool{false, true} {
			if gone {
				e.Gone[id] = []string{"weaver worker"}
			}
			first := store.History{Task: task.Task{ID: other, Type: "acme.test.other.v1", Queue: "q", State: task.Running, MaxAttempts: 1, CreatedAt: now}}
			x, _ := e.Task(&h, explain.Running{}, explain.Known{other: &first, id: &h})
			do(x)
		}
	}
	for _, state := range task.States() {
		for _, kind := range kinds {
			for _, change := range []func(*store.History){
				func(*store.History) {},
				func(h *store.History) { h.Task.CancelRequested = true },
				func(h *store.History) { h.Task.JobID, h.Task.Cost = jobID, 1 },
				func(h *store.History) { h.Task.MaxCost, h.Task.Cost = 5, 9 },
				func(h *store.History) { h.Task.Forgotten = true },
				func(h *store.History) { h.Task.LeaseExpiresAt = now.Add(-time.Hour) },
				func(h *store.History) { ask(h, "-color", "") },
				func(h *store.History) { ask(h, "color", "weaver.person.approve.v1") },
				func(h *store.History) { ask(h, "", "") },
				func(h *store.History) { h.Holders = []task.ID{other} },
				func(h *store.History) { h.Ahead = other },
			} {
				for _, wait := range waits {
					if state != task.Pending && wait != task.WaitNone {
						continue
					}
					for _, pause := range []task.PauseKind{task.PauseNone, task.PauseTask, task.PauseType, task.PauseQueue} {
						h := store.History{Task: task.Task{ID: id, Type: "acme.test.one.v1", Queue: "-a/b %?", State: state, Waiting: wait, Pause: pause, MaxAttempts: 3, AttemptNo: 1, CreatedAt: now}}
						if kind != task.KindNone {
							h.Task.Error = &task.Error{Kind: kind, Message: "it broke"}
						}
						if wait == task.WaitSignal {
							h.Task.AttemptNo = 1
							h.Steps = []task.Step{{Name: "wait", Kind: task.KindSignal, State: task.StepWaiting, Signal: "-go --now", StartedAt: now}}
						}
						change(&h)
						tell(h)
					}
				}
			}
		}
	}
	for _, state := range []task.JobState{task.JobRunning, task.JobBlocked, task.JobFailed, task.JobCancelled, task.JobSucceeded} {
		for _, st := range task.States() {
			j := *spent
			j.State = state
			one := task.Task{ID: id, JobID: jobID, Node: "one", Type: "acme.test.one.v1", State: st, MaxAttempts: 1, CreatedAt: now}
			h := store.History{Task: one}
			x, _ := e.Job(&j, []task.Task{one}, explain.Known{id: &h})
			do(x)
		}
	}
}

// ask makes a task ask a question, or fail in a step.
func ask(h *store.History, question, typ string) {
	if h.Task.Error == nil {
		h.Task.Error = &task.Error{Kind: task.KindHandler, Message: "color: which?"}
	}
	if typ != "" {
		h.Task.Type = typ
	}
	h.Task.Error.Ask = question
	if question == "" {
		h.Task.Error.Step = "-step"
	}
}
