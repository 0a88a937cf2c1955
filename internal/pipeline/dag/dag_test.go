package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline/dag"
)

func TestWaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names string
		needs map[string][]string
		want  string
	}{
		{"a", nil, "[[a]]"},
		{"d c b a", map[string][]string{"d": {"b", "c"}, "b": {"a"}, "c": {"a"}}, "[[a] [c b] [d]]"},
		{"a b c", map[string][]string{"b": {"a"}, "c": {"a", "b"}}, "[[a] [b] [c]]"},         // the longest way counts
		{"c x", map[string][]string{"c": {"b"}, "b": {"a"}}, "[[c x]]"},                      // needs outside the names do not count
		{"a b c", map[string][]string{"b": {"c"}, "c": {"b"}}, "[[a]]"},                      // no pipeline has this
		{"e d c b a", map[string][]string{"b": {"a"}, "d": {"a", "b"}}, "[[e c a] [b] [d]]"}, // the order of the file
	} {
		if got := fmt.Sprint(dag.Waves(strings.Fields(c.names), c.needs)); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.names, c.needs, got, c.want)
		}
	}
}
