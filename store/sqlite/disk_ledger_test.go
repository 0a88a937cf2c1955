package sqlite_test

import (
	"errors"
	"fmt"
	"sync"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ledger records callers' requests and their answers, with the positions in the disk's history
// before and after.
type ledger struct {
	now func() int

	mu    sync.Mutex
	calls []*recordedCall
}

// recordedCall is one call.
type recordedCall struct {
	what       string
	begin, end int
	err        error
	over       bool
	// shows returns the number of its marks in the file, and their total.
	shows func(f *found) (marks, of int)
}

// amount is the part of a recordedCall that is in a file.
type amount int

const (
	nothing amount = iota
	half
	entire
	idle // it had nothing to do
)

func (d *recordedCall) amount(f *found) amount {
	n, of := d.shows(f)
	switch {
	case of == 0:
		return idle
	case n == 0:
		return nothing
	case n == of:
		return entire
	}
	return half
}

// do runs a call and records it.
func (l *ledger) do(what string, shows func(*found) (int, int), call func() error) error {
	d := &recordedCall{what: what, shows: shows, begin: l.now()}
	l.mu.Lock()
	l.calls = append(l.calls, d)
	l.mu.Unlock()
	err := call()
	end := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	d.err, d.end, d.over = err, end, true
	return err
}

// errs returns the errors of callers.
func (l *ledger) errs() (errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.calls {
		if d.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.what, d.err))
		}
	}
	return errs
}

// verdict is the result of comparing a file with the ledger.
type verdict struct {
	acked int      // acknowledged calls
	lost  []string // acknowledged calls that the file lacks
	wrong []string // every other difference
}

// always is a position after every history.
const always = int(^uint(0) >> 1)

// compare compares the ledger with the file at a position of the history. Failed calls must
// not be stored, or may be with maybe.
func (l *ledger) compare(f *found, at int, maybe bool) (v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone *recordedCall
	for _, d := range l.calls {
		if d.shows == nil {
			continue
		}
		got := d.amount(f)
		if got == idle {
			continue
		}
		returned := d.over && d.end <= at
		switch {
		case got == half:
			n, of := d.shows(f)
			v.wrong = append(v.wrong, fmt.Sprintf("%s is there by half: %d of %d", d.what, n, of))
		case returned && d.err == nil:
			v.acked++
			switch {
			case got == nothing:
				v.lost = append(v.lost, d.what+" was acknowledged and is gone")
				if gone == nil || d.end < gone.end {
					gone = d
				}
			case gone != nil && d.begin >= gone.end:
				v.wrong = append(v.wrong, fmt.Sprintf("%s is there, and %s, which was acknowledged before it began, is gone", d.what, gone.what))
			}
		case returned && got == entire && !errors.Is(d.err, store.ErrUnknown) && !maybe:
			v.wrong = append(v.wrong, fmt.Sprintf("%s is there, its caller got: %v", d.what, d.err))
		case d.begin > at && got == entire:
			v.wrong = append(v.wrong, d.what+" is there before it was asked for")
		}
	}
	return v
}

func tally(ok ...bool) (n int) {
	for _, b := range ok {
		if b {
			n++
		}
	}
	return n
}

// The traces of calls in a file.

// showsAll sums the traces of the parts of a call.
func showsAll(parts []func(*found) (int, int)) func(*found) (int, int) {
	return func(f *found) (n, of int) {
		for _, shows := range parts {
			pn, pof := shows(f)
			n, of = n+pn, of+pof
		}
		return n, of
	}
}

func showsTasks(sub store.Submission, order string) func(*found) (int, int) {
	return func(f *found) (n, of int) {
		for i := range sub.Tasks {
			n += tally(f.tasks[sub.Tasks[i].ID] != nil)
		}
		of = len(sub.Tasks)
		if sub.Job != nil {
			of++
			for i := range f.snap.Jobs {
				n += tally(f.snap.Jobs[i].ID == sub.Job.ID)
			}
			for _, c := range f.snap.Chores { // it stores the others
				if c.Kind == store.ChoreEnqueue && c.Subject == sub.Job.ID.String() {
					n += c.Children
				}
			}
		}
		if order != "" {
			of++
			n += tally(f.orders[order])
		}
		return n, of
	}
}

// showsLease counts the tasks that run or ran under a lease: all claimed tasks, or no task.
func showsLease(id task.LeaseID, claimed *[]store.Claimed) func(*found) (int, int) {
	return func(f *found) (n, of int) {
		for _, t := range f.tasks {
			n += tally(t.LeaseID == id)
		}
		for i := range f.snap.Attempts {
			n += tally(f.snap.Attempts[i].LeaseID == id)
		}
		if *claimed == nil {
			return n, n
		}
		return n, len(*claimed)
	}
}

func showsStep(id task.ID, name, value, order string) func(*found) (int, int) {
	return func(f *found) (n, of int) {
		for i := range f.snap.Steps {
			s := &f.snap.Steps[i]
			n += tally(s.TaskID == id && s.Name == name && string(s.Value) == value)
		}
		if order == "" {
			return n, 1
		}
		return n + tally(f.orders[order]), 2
	}
}

// showsEnd counts the task's state and the row of its attempt.
func showsEnd(l task.Lease, outcome task.Outcome, state task.State) func(*found) (int, int) {
	return func(f *found) (n, of int) {
		t := f.tasks[l.Task]
		n = tally(t != nil && t.State == state)
		for i := range f.snap.Attempts {
			a := &f.snap.Attempts[i]
			n += tally(a.TaskID == l.Task && a.LeaseID == l.ID && a.Outcome == outcome)
		}
		return n, 2
	}
}

func showsState(id task.ID, state task.State) func(*found) (int, int) {
	return func(f *found) (int, int) {
		t := f.tasks[id]
		return tally(t != nil && t.State == state), 1
	}
}
