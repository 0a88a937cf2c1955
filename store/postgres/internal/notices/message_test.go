package notices

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var drawn = task.NewIDs(nil)

func draw(n int) (list []task.ID) {
	for range n {
		list = append(list, drawn.New())
	}
	return list
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	some, many := draw(3), draw(maxIDs+1)
	for _, c := range []struct {
		name        string
		got         []store.Notice
		short, full store.Notice
	}{
		{"work only", []store.Notice{{Due: true}}, store.Notice{Due: true}, store.Notice{Due: true}},
		{
			"ends",
			[]store.Notice{{Due: true, Tasks: some[:1]}, {Tasks: some[1:2], Jobs: some[2:]}},
			store.Notice{Due: true},
			store.Notice{Due: true, Tasks: some[:2], Jobs: some[2:]},
		},
		{
			"events",
			[]store.Notice{{Due: true, Events: some[:1]}, {Events: some[:2]}},
			store.Notice{Due: true},
			store.Notice{Due: true, Events: some[:2]},
		},
		{"too many with events", []store.Notice{{Due: true, Jobs: many[:60], Events: many[60:]}}, store.Notice{Due: true}, store.Notice{Due: true, Jobs: many[:60], Events: many[60:maxIDs], External: true}},
		{"a cancel", []store.Notice{{Cancels: some}}, store.Notice{Cancels: some}, store.Notice{Cancels: some}},
		{"too many cancels", []store.Notice{{Cancels: many}}, store.Notice{Cancels: many[:maxIDs], External: true}, store.Notice{Cancels: many[:maxIDs], External: true}},
		{"too many ends", []store.Notice{{Due: true, Tasks: many[:60], Jobs: many[60:]}}, store.Notice{Due: true}, store.Notice{Due: true, Tasks: many[:60], Jobs: many[60:maxIDs], External: true}},
		{"too many of all", []store.Notice{{Cancels: some, Tasks: many, Jobs: many}}, store.Notice{Cancels: some}, store.Notice{Cancels: some, Tasks: many[:maxIDs-3], External: true}},
	} {
		var n news
		for i := range c.got {
			n.add(&c.got[i])
		}
		short, full := n.payloads()
		for _, p := range []struct {
			payload string
			want    store.Notice
		}{{short, c.short}, {full, c.full}} {
			got := notice(p.payload)
			if got.Due != p.want.Due || got.External != p.want.External || !slices.Equal(got.Tasks, p.want.Tasks) ||
				!slices.Equal(got.Jobs, p.want.Jobs) || !slices.Equal(got.Cancels, p.want.Cancels) || !slices.Equal(got.Events, p.want.Events) {
				t.Errorf("%s: %q says %+v, want %+v", c.name, p.payload, got, p.want)
			}
			if len(p.payload) >= 8000 {
				t.Errorf("%s: the payload has %d bytes: PostgreSQL takes fewer than 8000", c.name, len(p.payload))
			}
		}
	}
	if got := notice("what a later version says"); !got.External {
		t.Errorf("a payload that cannot be read says %+v, want External", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	names := []string{Channel("weaver", "a"), Channel("weaver", "b"), Channel("weavera", ""), Channel("other", strings.Repeat("ü", 200))}
	slices.Sort(names)
	if len(slices.Compact(names)) != 4 {
		t.Errorf("the channels of different namespaces and schemas are %q", names)
	}
	for _, name := range names {
		if len(name) > 63 {
			t.Errorf("the channel %q has more than 63 bytes", name)
		}
	}
}

// A worker's row changes at most once a second. It says busy after a second without a claim
// that found nothing.
func TestWorkerSays(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name string
		w    worker
		idle bool
		in   time.Duration // time until it is written; < 0: at once
	}{
		{"new", worker{}, false, 0},
		{"found nothing", worker{idle: true}, true, -1},
		{"found nothing again, its row was just written", worker{idle: true, wrote: ago(time.Second / 2)}, true, time.Second / 2},
		{"says so", worker{idle: true, says: true, wrote: now}, true, sayAgain},
		{"claimed just now", worker{idle: true, says: true, since: now, wrote: ago(time.Minute)}, false, time.Second},
		{"claims for long", worker{idle: true, says: true, since: ago(2 * time.Second), wrote: ago(time.Minute)}, false, -1},
		{"claims for long, its row was just written", worker{idle: true, says: true, since: ago(2 * time.Second), wrote: now}, false, time.Second},
		{"found nothing, and then something", worker{idle: true, since: now}, false, 0},
	} {
		idle, at := c.w.change()
		in := time.Duration(0)
		if !at.IsZero() {
			if in = at.Sub(now); in <= 0 {
				in = -1
			}
		}
		if idle != c.idle || in != c.in {
			t.Errorf("%s: idle %v in %v, want %v in %v", c.name, idle, in, c.idle, c.in)
		}
	}
}
