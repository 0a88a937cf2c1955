package explain_test

import (
	"reflect"
	"testing"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
)

// An error has a long form, a short form, and a form of several lines.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		e               *task.Error
		failure         string
		headline, first string
	}{
		{&task.Error{Kind: task.KindHandler, Message: "exit 3\nmore"}, "handler_error: exit 3 more", "exit 3", "exit 3"},
		{&task.Error{Kind: task.KindPanic, Message: "nil map"}, "panic: nil map", "panic: nil map", "panic: nil map"},
		{&task.Error{Kind: task.KindTimeout, Message: "timeout: 3s"}, "timeout: 3s", "timeout: 3s", "timeout: 3s"},
		{&task.Error{Kind: task.KindHandler, Message: "exit 3; it wrote last:\nmore"}, "handler_error: exit 3; it wrote last: more", "exit 3", "exit 3; it wrote last:"},
		{&task.Error{Kind: task.KindHandler, Message: "a: b; c"}, "handler_error: a: b; c", "a: b; c", "a: b; c"},
		{&task.Error{Kind: task.KindHandler, Message: "two errors:\nmore"}, "handler_error: two errors: more", "two errors", "two errors:"},
		{&task.Error{Kind: task.KindPanic, Message: "panic: nil map"}, "panic: nil map", "panic: nil map", "panic: nil map"},
		{&task.Error{Kind: task.KindPanic, Message: "panic: nil map", Step: "charge"}, `panic in step "charge": nil map`, "panic: nil map", "panic: nil map"},
		{&task.Error{Kind: task.KindPanic, Message: `step "charge": panic: nil`, Step: "charge"}, `step "charge": panic: nil`, `step "charge": panic: nil`, `step "charge": panic: nil`},
		{&task.Error{Kind: task.KindHandler, Message: "no", Code: "card_refused"}, "handler_error (card_refused): no", "no", "no"},
		{&task.Error{Kind: task.KindHandler, Message: "no", Code: "E17", Step: "charge"}, `handler_error (E17) in step "charge": no`, "no", "no"},
		{&task.Error{Kind: task.KindPoison}, "poison", "poison", "poison"},
		{&task.Error{Kind: task.KindHandler, Message: "no \x1b[31mmoney\x1b[0m\a", Step: "charge"}, `handler_error in step "charge": no money�`, "no money�", "no money�"},
		{&task.Error{Kind: task.KindPanic, Message: `step "charge": nil`, Step: "charge"}, `panic: step "charge": nil`, `panic: step "charge": nil`, `panic: step "charge": nil`},
	} {
		if got := explain.Failure(tc.e, 80); got != tc.failure {
			t.Errorf("Failure(%v) = %q, want %q", *tc.e, got, tc.failure)
		}
		if got := explain.Headline(tc.e); got != tc.headline {
			t.Errorf("Headline(%v) = %q, want %q", *tc.e, got, tc.headline)
		}
		if got := explain.FailureLines(tc.e, 9, "")[0]; got != tc.first {
			t.Errorf("FailureLines(%v)[0] = %q, want %q", *tc.e, got, tc.first)
		}
	}
	if got := explain.Failure(nil, 80); got != "no error is recorded" {
		t.Errorf("Failure(nil) = %q", got)
	}
	long := &task.Error{Kind: task.KindPanic, Message: "1\n2\n3\n4\n5\n"}
	if got, want := explain.FailureLines(long, 3, ""), []string{"panic: 1", "… 2 lines", "4", "5"}; !reflect.DeepEqual(got, want) {
		t.Errorf("FailureLines = %q, want %q", got, want)
	}
}

// Omitted lines of a command's output are counted, wherever they were omitted.
func TestFailureLinesOfACommand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		message string
		want    []string
	}{
		{"exit 1: c\nIt wrote last:\nb\nc", []string{"exit 1: c", "It wrote last:", "b", "c"}},
		{"exit 1: d\nIt wrote last:\na\nb\nc\nd", []string{"exit 1: d", "… 2 lines: `weaver logs J/T`", "c", "d"}},
		{"exit 1: d\nIt wrote 100 lines in all, last:\na\nb\nc\nd", []string{"exit 1: d", "… 98 lines: `weaver logs J/T`", "c", "d"}},
		{"exit 1: d\nIt wrote 3 lines in all, last:\nc\nd", []string{"exit 1: d", "… 1 line: `weaver logs J/T`", "c", "d"}},
		{"exit 1: d\nIt wrote 12 lines in all.", []string{"exit 1: d", "… 11 lines: `weaver logs J/T`"}},
		{"exit 1: d", []string{"exit 1: d"}},
	} {
		if got := explain.FailureLines(&task.Error{Kind: task.KindHandler, Message: tc.message}, 3, "weaver logs J/T"); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.message, got, tc.want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	id1 := task.Task{ID: id(1), Type: charge}
	node := task.Task{ID: id(1), Type: charge, Node: "a\x1b[2Jb"}
	for _, tc := range []struct{ got, want string }{
		{explain.Label(&id1), "00000000000000000000000001 (acme.billing.charge.v1)"},
		{explain.Label(&node), `"ab" (00000000000000000000000001)`},
		{explain.Short(&id1), "00000000000000000000000001"},
		{explain.Short(&node), `"ab"`},
		{explain.By("", ""), ""},
		{explain.By("ops", ""), " by ops"},
		{explain.By("", "too\nlate"), ": too late"},
		{explain.By("ops", "too late"), " by ops: too late"},
		{explain.Who("", "late"), "late"},
		{explain.Progress(&task.Progress{Current: 2.5}, 80), "2.5"},
		{explain.Progress(&task.Progress{Current: 3, Total: 10, Message: "reading\nrows"}, 80), "3 of 10: reading rows"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
