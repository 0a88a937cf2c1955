package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// call is one call of a step's function, or several in one attempt.
type call struct {
	step    string
	attempt int
}

// started compares the step log with the step records: no function started after the commit of its value. It checks
// the attempt number, which rises with every claim, and the clock.
func (e *evidence) started(r *records) {
	starts, returns := make(map[call]int), make(map[call]int)
	for _, l := range r.lines {
		c := call{l.name, l.attempt}
		if l.what == lineReturn {
			returns[c]++
		}
		if l.what != lineStart {
			continue
		}
		starts[c]++
		st := r.completed(l.name)
		if st == nil {
			continue // recorded reports this
		}
		// The store keeps microseconds.
		at := time.Unix(0, l.at).UTC().Truncate(time.Microsecond)
		switch {
		case l.attempt > st.AttemptNo:
			e.report("started", "step %s of task %s was started by attempt %d (%s), and attempt %d had completed it",
				l.name, r.ID, l.attempt, l, st.AttemptNo)
		case at.After(st.CompletedAt):
			e.report("started", "step %s of task %s was started %s after it was recorded (%s)", l.name, r.ID, at.Sub(st.CompletedAt), l)
		}
	}
	for _, m := range recipes[r.in.Kind] {
		if m.do == doSleep || m.do == doStart {
			continue // they have no function
		}
		for _, name := range m.names {
			st := r.completed(name)
			if st == nil {
				continue
			}
			c := call{name, st.AttemptNo}
			if starts[c] != st.Try || returns[c] != 1 {
				e.report("tries", "step %s of task %s is recorded as completed by try %d of attempt %d, where its function was started %d times and returned %d values",
					name, r.ID, st.Try, st.AttemptNo, starts[c], returns[c])
			}
		}
	}
	for c, n := range starts {
		if most := e.mostTries(r, c.step); n > most {
			e.report("tries", "step %s of task %s was started %d times by attempt %d, which may try %d times", c.step, r.ID, n, c.attempt, most)
		}
	}
}

// kept checks that a value given to a handler is the value stored in the end.
func (e *evidence) kept(r *records) {
	for _, l := range r.lines {
		if l.what != lineKept {
			continue
		}
		name, by, _ := strings.Cut(l.name, "@")
		if st := r.completed(name); st != nil && strconv.Itoa(st.AttemptNo) != by {
			e.report("forgotten", "the handler of task %s had a value of step %s that attempt %s made (%s), and what is recorded was made by attempt %d",
				r.ID, name, by, l, st.AttemptNo)
		}
	}
}

// mostTries is the maximum number of starts of a step in one attempt.
func (e *evidence) mostTries(r *records, step string) int {
	for _, m := range recipes[r.in.Kind] {
		for _, name := range m.names {
			if name == step && m.do == doShaky {
				return 2
			}
		}
	}
	return 1
}

// tried checks that every attempt is accounted for. A handler was called at most once in each, and only failures of
// the handler count as failures, whatever was killed.
func (e *evidence) tried(r *records) {
	failures := 0
	for i, a := range r.attempts {
		if a.No != i+1 {
			e.report("attempts", "the %d. recorded attempt of task %s is number %d", i+1, r.ID, a.No)
		}
		switch a.Outcome {
		case task.OutcomeSuccess, task.OutcomeSuspended, task.OutcomeReleased, task.OutcomeLeaseLost:
		case task.OutcomeFailure:
			failures++
			if r.in.Kind != "flaky" {
				e.report("attempts", "attempt %d of task %s (%s) failed: %+v", a.No, r.ID, r.in.Kind, a.Error)
			}
		default:
			e.report("attempts", "attempt %d of task %s ended %s", a.No, r.ID, a.Outcome)
		}
	}
	if len(r.attempts) != r.AttemptNo {
		e.report("attempts", "task %s is at attempt %d, and %d are recorded", r.ID, r.AttemptNo, len(r.attempts))
	}
	if r.State == task.Succeeded && r.AttemptCount != 1+failures {
		e.report("attempts", "task %s counts %d attempts, and has %d failures beside its success", r.ID, r.AttemptCount, failures)
	}
	if r.in.Kind == "flaky" && r.State == task.Succeeded && failures != 1 {
		e.report("attempts", "task %s, whose handler fails once, has %d failed attempts", r.ID, failures)
	}
	calls := make(map[int]int)
	for _, l := range r.lines {
		if l.what == lineEnter {
			calls[l.attempt]++
		}
	}
	for no, n := range calls {
		if n > 1 || no > r.AttemptNo {
			e.report("attempts", "the handler of task %s was called %d times as attempt %d of %d", r.ID, n, no, r.AttemptNo)
		}
	}
}

// exclusive checks that no more handlers of a key run than its limit allows. Handlers of a process about to be killed
// do not count, even those that it starts after its announcement. The next log line may come from a process that
// knows of its death.
func (e *evidence) exclusive() {
	type holder struct {
		life int
		task string
	}
	running := make(map[string]map[holder]line) // by key
	dying := make(map[int]bool)
	for _, l := range e.log {
		h := holder{l.life, l.task}
		switch l.what {
		case lineKill:
			dying[l.life] = true
			for _, holders := range running {
				maps.DeleteFunc(holders, func(h holder, _ line) bool { return h.life == l.life })
			}
		case lineExit:
			for _, holders := range running {
				delete(holders, h)
			}
		case lineEnter:
			if l.name == "-" || dying[l.life] {
				continue
			}
			if running[l.name] == nil {
				running[l.name] = make(map[holder]line)
			}
			running[l.name][h] = l
			if limit := limitOf(l.name); len(running[l.name]) > limit {
				e.report("key", "%d handlers run with %s, which allows %d: %v", len(running[l.name]), l.name, limit, slices.Collect(maps.Values(running[l.name])))
			}
		}
	}
}

// limitOf returns the limit of a key; see keyOf.
func limitOf(key string) int {
	k, err := strconv.Atoi(strings.TrimPrefix(key, "key-"))
	if err != nil {
		return 0
	}
	return limitOfKey(k)
}

// lost checks that only killed workers lost leases, and each at most one per slot and one per outcome in the middle
// of a write.
func (e *evidence) lost() {
	if e.pids == nil {
		return
	}
	allowed := make(map[string]int) // by process id
	for _, l := range e.log {
		if l.what == lineKill {
			allowed[fmt.Sprint(e.pids[l.life])] += 2 * slots
		}
	}
	lost := make(map[string]int)
	for _, a := range e.snap.Attempts {
		if a.Outcome == task.OutcomeLeaseLost {
			lost[pidOf(a.Worker)]++
		}
	}
	for pid, n := range lost {
		if n > allowed[pid] {
			e.report("leases", "process %s lost %d leases, and was killed with at most %d", pid, n, allowed[pid])
		}
	}
	if e.workers != 0 {
		e.report("leases", "the store still has %d workers, and all have ended", e.workers)
	}
}

// pidOf returns the process ID in a worker's name, which is host:pid.
func pidOf(worker string) string { return worker[strings.LastIndexByte(worker, ':')+1:] }
