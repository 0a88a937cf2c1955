package weaver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// names are pairs of texts that a careless store confuses, and texts that no store accepts.
var names = [][2]string{
	{"a", "a"},
	{"a", "A"},
	{"a", "a "},
	{"", "a"},
	{"a", "a\x00"},
	{"a\x00b", "a\x00c"},
	{"\xff", "\xfe"},
	{"\xff", "\ufffd"},
	{"\xc3", "é"},
	{"é", "e\u0301"},
	{"ﬁ", "fi"},
	{"ß", "ss"},
	{"İ", "i"},
	{"ﾊ", "ハ"},
	{"\ufeffa", "a"},
	{"a\u200db", "ab"},
	{"\u202ea", "a"},
	{"1", "01"},
	{"1", "1.0"},
	{"1e3", "1000"},
	{"0x10", "16"},
	{"null", "NULL"},
	{"true", "1"},
	{"%", "_"},
	{"a*", "ab"},
	{"'; --", `"`},
	{"a\nb", "a\rb"},
	{"\t", " "},
	{"a/b", "a\\b"},
	{"\U0010ffff", "\uffff"},
	{"\ud7ff", "\ue000"},
	{"<&>", "\\u003c\\u0026\\u003e"},
	{"\u2028", "\\u2028"},
	{strings.Repeat("k", 255), strings.Repeat("k", 256)},
	{strings.Repeat("é", 127), strings.Repeat("é", 128)},
	{strings.Repeat("x", 5000), "x"},
}

// Every store either refuses a key with a reason or deduplicates by it: equal bytes are the same key,
// other bytes another one.
func FuzzIdempotencyKey(f *testing.F) {
	for _, n := range names {
		f.Add(n[0], n[1])
		f.Add(n[1], n[0])
	}
	stores := newFuzzStores(f)
	const one, two = "fuzz.keys.one.v1", "fuzz.keys.two.v1"
	f.Fuzz(func(t *testing.T, a, b string) {
		keyed := func(typ, key string) weaver.Draft {
			return weaver.NewDraft(typ, []byte(`1`), weaver.IdempotencyKey(key))
		}
		for _, key := range []string{a, b} {
			if nameable(key) {
				continue
			}
			for name, c := range stores.clients(t) {
				_, err := c.EnqueueTasks(t.Context(), keyed(one, key))
				if !errors.Is(err, weaver.ErrInvalidOption) || !strings.Contains(err.Error(), "IdempotencyKey: ") {
					t.Fatalf("%s: key %q: %v, want an invalid option", name, key, err)
				}
			}
			return
		}
		elsewhere := stores.clients(t)
		for name, c := range stores.clients(t) {
			first := enqueueOne(t, c, keyed(one, a))
			got, err := c.EnqueueTasks(t.Context(), keyed(one, a), keyed(one, b), keyed(one, b), keyed(two, a))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if first.Disposition != store.DispositionCreated || got[0].Disposition != store.DispositionExisting || got[0].ID != first.ID {
				t.Errorf("%s: the key %q names %v, then %v", name, a, first, got[0])
			}
			if same := got[1].ID == first.ID; same != (a == b) || (got[1].Disposition == store.DispositionExisting) != same {
				t.Errorf("%s: %q and %q: %v, then %v", name, a, b, first, got[1])
			}
			if got[2].ID != got[1].ID || got[2].Disposition != store.DispositionExisting {
				t.Errorf("%s: twice %q in one submit: %v, then %v", name, b, got[1], got[2])
			}
			if got[3].Disposition != store.DispositionCreated {
				t.Errorf("%s: another type with the key %q: %v", name, a, got[3])
			}
			if other := enqueueOne(t, elsewhere[name], keyed(one, a)); other.Disposition != store.DispositionCreated {
				t.Errorf("%s: another namespace with the key %q: %v", name, a, other)
			}
			if back, err := c.Get(t.Context(), first.ID); err != nil || back.IdempotencyKey != a {
				t.Errorf("%s: the key %q came back as %q, %v", name, a, back.IdempotencyKey, err)
			}
			if err := errors.Join(c.Cancel(t.Context(), first.ID), c.Delete(t.Context(), first.ID)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if again := enqueueOne(t, c, keyed(one, a)); again.Disposition != store.DispositionCreated {
				t.Errorf("%s: the key %q is not free after the delete: %v", name, a, again)
			}
		}
	})
}

// Every store either refuses names of queues, labels, metadata and concurrency keys with a reason, or
// keeps them unchanged and distinguishes them.
func FuzzNames(f *testing.F) {
	for _, n := range names {
		f.Add(n[0], n[1])
		f.Add(n[1], n[0])
	}
	stores := newFuzzStores(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		named := func(name, value string) weaver.Draft {
			return weaver.NewDraft("fuzz.names.any.v1", []byte(`1`), weaver.Queue(name), weaver.Label(name, value), weaver.Metadata(name, value), weaver.ConcurrencyKey(name))
		}
		good := nameable(a) && storableText(b) && len(b) <= task.MaxKey
		for name, c := range stores.clients(t) {
			_, err := c.EnqueueTasks(t.Context(), named(a, b))
			if !good {
				if !errors.Is(err, weaver.ErrInvalidOption) {
					t.Fatalf("%s: %q, %q: %v, want an invalid option", name, a, b, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all := list(t, c, weaver.Filter{Queue: a, Labels: map[string]string{a: b}})
			if len(all) != 1 {
				t.Fatalf("%s: %d tasks in queue %q with label %q", name, len(all), a, b)
			}
			got := all[0]
			if got.Queue != a || got.Labels[a] != b || got.Metadata[a] != b || got.ConcurrencyKey != a || len(got.Labels) != 1 || len(got.Metadata) != 1 {
				t.Errorf("%s: %q, %q came back as %+v", name, a, b, got)
			}
			if b != "" {
				if other := list(t, c, weaver.Filter{Queue: b}); (len(other) == 1) != (a == b) {
					t.Errorf("%s: %d tasks in queue %q, one is in %q", name, len(other), b, a)
				}
			}
			if other := list(t, c, weaver.Filter{Labels: map[string]string{b: b}}); (len(other) == 1) != (a == b) {
				t.Errorf("%s: %d tasks with label %q, one has %q", name, len(other), b, a)
			}
			if other := list(t, c, weaver.Filter{Labels: map[string]string{a: a}}); (len(other) == 1) != (a == b) {
				t.Errorf("%s: %d tasks whose label is %q, one has %q", name, len(other), a, b)
			}
		}
	})
}

// Every store either refuses operators' texts with a reason or keeps them unchanged, with the same
// answers.
func FuzzOperatorTexts(f *testing.F) {
	for _, n := range names {
		f.Add(n[0], n[1])
		f.Add(n[1], n[0])
	}
	stores := newFuzzStores(f)
	f.Fuzz(func(t *testing.T, by, reason string) {
		refused := make(map[string]string)
		for name, c := range stores.clients(t) {
			id := enqueueOne(t, c, weaver.NewDraft("fuzz.texts.any.v1", []byte(`1`))).ID
			err := c.Cancel(t.Context(), id, weaver.By(by), weaver.Reason(reason))
			h, herr := c.History(t.Context(), id)
			if herr != nil {
				t.Fatalf("%s: %v", name, herr)
			}
			if err != nil {
				refused[name] = err.Error()
				if !errors.Is(err, weaver.ErrInvalidOption) || len(h.Audit) > 0 || h.Task.State.Terminal() {
					t.Errorf("%s: by %q, reason %q: %v, and the task is %s", name, by, reason, err, h.Task.State)
				}
				continue
			}
			if h.Task.CancelBy != by || h.Task.CancelReason != reason {
				t.Errorf("%s: by %q, reason %q came back as %q, %q", name, by, reason, h.Task.CancelBy, h.Task.CancelReason)
			}
			if len(h.Audit) != 1 || h.Audit[0].Actor != by || h.Audit[0].Reason != reason {
				t.Errorf("%s: by %q, reason %q is audited as %+v", name, by, reason, h.Audit)
			}
			queue := "q" + by
			err = c.PauseQueue(t.Context(), queue, weaver.By(by), weaver.Reason(reason))
			if len(queue) > task.MaxKey {
				if !errors.Is(err, weaver.ErrInvalidOption) {
					t.Errorf("%s: pause %q: %v, want an invalid option", name, queue, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: pause %q: %v", name, queue, err)
			}
			if qs, err := c.Queues(t.Context()); err != nil || len(qs) != 1 || qs[0].Name != queue || !qs[0].Paused {
				t.Errorf("%s: paused %q, and the queues are %+v, %v", name, queue, qs, err)
			}
			if err := c.ResumeQueue(t.Context(), queue); err != nil {
				t.Fatalf("%s: resume %q: %v", name, queue, err)
			}
			if qs, err := c.Queues(t.Context()); err != nil || len(qs) != 0 {
				t.Errorf("%s: resumed %q, and the queues are %+v, %v", name, queue, qs, err)
			}
		}
		if len(refused) != 0 && len(refused) != len(stores.names) {
			t.Errorf("only some stores refuse by %q, reason %q: %v", by, reason, refused)
		}
	})
}
