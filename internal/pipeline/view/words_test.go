package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

func TestGlyphsAreOneColumnWide(t *testing.T) {
	t.Parallel()
	for s, g := range glyphs {
		if text.Width(g) != 1 {
			t.Errorf("the glyph of %s is %d columns wide", s, text.Width(g))
		}
	}
}

// The node's state reaches package explain, which writes the text.
func TestWords(t *testing.T) {
	t.Parallel()
	needs := []*node{{name: "x", state: task.Failed}, {name: "y", state: task.Succeeded}, {name: "z", state: task.Cancelled}}
	for _, tc := range []struct {
		n           node
		long, short string
		note        string
	}{
		{node{state: task.Ready}, "ready", "ready", "waits for a worker"},
		{node{state: task.Running, begun: At(0), said: "  x "}, "running 5s", "5s", "x"},
		{node{state: task.Running, begun: At(0), asked: true}, "ending 5s", "ending", ""},
		{node{state: task.Succeeded, took: time.Second}, "succeeded 1s", "1s", ""},
		{node{state: task.Pending, waiting: task.WaitDeps, open: 2}, "waiting", "waiting", "needs 2 more tasks"},
		{node{state: task.Pending, waiting: task.WaitDeps, needs: needs}, "waiting", "waiting", "x, z did not succeed"},
		{node{state: task.Pending, waiting: task.WaitConcurrency, lock: "db"}, "waiting", "waiting", `waits for key "db"`},
		{node{state: task.Pending, waiting: task.WaitRetry, dueAt: At(3), said: "no"}, "retry in a moment", "retry a moment", "no"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindDependencyFailed}, needs: needs}, "cancelled", "cancelled", "x, z did not succeed"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindCancelled}, cancelBy: "ops", cancelReason: "late"}, "cancelled", "cancelled", "ops: late"},
	} {
		long, short := tc.n.status(At(5))
		if note := tc.n.note(); long != tc.long || short != tc.short || note != tc.note {
			t.Errorf("%s %s: %q, %q, %q; want %q, %q, %q", tc.n.state, tc.n.waiting, long, short, note, tc.long, tc.short, tc.note)
		}
	}
}

// A task that was cancelled for a need names the root of the chain, once.
func TestCancelledNoteNamesTheRoot(t *testing.T) {
	t.Parallel()
	broken := &node{key: "c0", state: task.Failed}
	last := []*node{broken}
	for i := range 50 {
		c := func(lane string) *node {
			return &node{
				key: fmt.Sprint(lane, i), state: task.Cancelled, needs: last,
				err: &task.Error{Kind: task.KindDependencyFailed, Message: "it needs another"},
			}
		}
		last = []*node{c("a"), c("b")}
	}
	last[0].needs = append(last[0].needs, broken)
	if got := last[0].note(); got != "c0 did not succeed" {
		t.Errorf("the note is %q", got)
	}
}
