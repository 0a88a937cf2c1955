package deliverytest

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/delivery"
)

// odd holds names that a transport could take for syntax of its own. Any two of them differ.
var odd = []string{
	"a", "A", " a", "a ", "a b", "", ":", "::", "a:", ":a", "a:b", "a:b:c", "{", "}", "{}", "}{", "{a}", "a{b}c", "{{a}}",
	"a\nb", "a\r\nb", "a\tb", "a\x00b", "%", "%41", "%2F", "%7B", "*", "?", "[a-z]", "a*", "\\", "\\x41", "\"a\"", "'a'",
	"/", "a/b", "../a", "#", "$-1", "*1\r\n$4\r\nPING\r\n", "é", "e\u0301", "日本語", "\u202eabc", "🦊", "\xff", "\xfe", "hints", "queues",
	strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y", strings.Repeat("{:", 512), strings.Repeat("é", 512),
}

// oddNames uses each odd name as queue, type and namespace. A transport may refuse names, and must take the other hints.
func oddNames(t *testing.T, tr delivery.Transport) {
	type place struct {
		namespace string
		lane      delivery.Lane
	}
	places := make([]place, 0, 3*len(odd)+4)
	for _, name := range odd {
		places = append(places, place{namespace, delivery.Lane{Queue: name, Type: "a"}})
		if name != "a" && name != "" {
			places = append(places, place{namespace, delivery.Lane{Queue: "a", Type: name}}, place{name, delivery.Lane{Queue: "a", Type: "a"}})
		}
	}
	// Pairs that are equal when they are joined.
	places = append(places, place{namespace, delivery.Lane{Queue: "q", Type: "r:s"}}, place{namespace, delivery.Lane{Queue: "q:r", Type: "s"}},
		place{"n", delivery.Lane{Queue: "q:r", Type: "s"}}, place{"n:q", delivery.Lane{Queue: "r", Type: "s"}})
	hints := make([]delivery.Hint, len(places))
	byNamespace := make(map[string][]int)
	for i, p := range places {
		hints[i] = hintsOf(p.lane, 1)[0]
		byNamespace[p.namespace] = append(byNamespace[p.namespace], i)
	}
	refused := make(map[int]bool)
	for ns, indexes := range byNamespace {
		batch := make([]delivery.Hint, len(indexes))
		for i, at := range indexes {
			batch[i] = hints[at]
		}
		err := tr.Push(t.Context(), ns, batch)
		var refusal *delivery.RefusedError
		switch {
		case errors.As(err, &refusal):
			for _, r := range refusal.Refused {
				t.Logf("refused: queue %q, type %q, namespace %q: %v", batch[r.Index].Lane.Queue, batch[r.Index].Lane.Type, ns, r.Reason)
				refused[indexes[r.Index]] = true
			}
		case err != nil:
			t.Fatalf("Push of namespace %q: %v", ns, err)
		}
	}
	for i, p := range places {
		switch {
		case p.lane.Queue == "":
			// Pop would take it for every queue.
		case refused[i]:
			wantNone(t, tr, p.namespace, p.lane)
		default:
			arrive(t, tr, p.namespace, hints[i:i+1], p.lane)
			wantNone(t, tr, p.namespace, p.lane)
		}
	}
}
