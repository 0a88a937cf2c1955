package text_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{
		"": 0, "plain": 5, "日本": 4, "e\u0301": 1, "👩\u200d💻": 2, "🇯🇵": 2, "├─ ": 3, "✓●○✗⊘↻": 6, "…": 1, "ｶﾅ": 2,
	} {
		if got := text.Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"a👩\u200d💻b", 3, "a…"},
	} {
		if got := text.Cut(tc.text, tc.limit); got != tc.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
	for limit := range 12 {
		if got := text.Cut("日本e\u0301語🇯🇵x", limit); text.Width(got) > limit {
			t.Errorf("cut to %d columns: %q has %d", limit, got, text.Width(got))
		}
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	on := text.Painter{On: true}
	for _, tc := range []struct {
		p                 text.Painter
		color, text, want string
	}{
		{text.Painter{}, text.Red, "x", "x"},
		{on, text.Red, "x", "\x1b[31mx\x1b[0m"},
		{on, text.Red, "", ""},
		{on, "", "x", "x"},
	} {
		if got := tc.p.Paint(tc.color, tc.text); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

func TestEveryStateButPendingHasAColor(t *testing.T) {
	t.Parallel()
	seen := map[string]task.State{}
	for _, s := range task.States() {
		c := text.StateColor(s)
		if (c == "") != (s == task.Pending) {
			t.Errorf("the colour of %s is %q", s, c)
		}
		if other, twice := seen[c]; twice {
			t.Errorf("%s and %s look alike", s, other)
		}
		seen[c] = s
	}
	for _, s := range []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled} {
		if text.StateColor(s) == "" {
			t.Errorf("jobs that are %s have no colour", s)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		text.Plural(0, "task"): "0 tasks", text.Plural(1, "task"): "1 task", text.Plural(2, "more task"): "2 more tasks",
		text.Stop("It runs"): "It runs.", text.Stop("It said: no."): "It said: no.", text.Stop("Why?"): "Why?", text.Stop("No!"): "No!",
		text.Printable("a\tb\n\x1b[2J\u202ec\xff"): "a b\n�[2J�c�",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
