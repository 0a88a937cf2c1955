package cli_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/goweaver/weaver/cli"
)

// A list is filled from short and empty pages, and fill reads no further than needed.
func TestFill(t *testing.T) {
	t.Parallel()
	pages := map[string][]int{"": {1, 2}, "1": {}, "2": {}, "3": {3, 4, 5}, "4": {6}}
	for _, c := range []struct {
		limit int
		after string
		want  []int
		next  string
	}{
		{2, "", []int{1, 2}, "1"},
		{3, "", []int{1, 2, 3}, "3+1"},
		{4, "1", []int{3, 4, 5, 6}, ""},
		{0, "", []int{1, 2, 3, 4, 5, 6}, ""},
		{50, "4", []int{6}, ""},
	} {
		got, next, err := cli.Fill(c.limit, c.after, func(limit int, after string) ([]int, string, error) {
			page, ok := pages[after]
			if !ok {
				return nil, "", fmt.Errorf("no page %q", after)
			}
			if len(page) > limit {
				return page[:limit], after + "+" + strconv.Itoa(limit), nil
			}
			n, _ := strconv.Atoi(after)
			if n == 4 {
				return page, "", nil
			}
			return page, strconv.Itoa(n + 1), nil
		})
		if err != nil || !slices.Equal(got, c.want) || next != c.next {
			t.Errorf("%d after %q: %v, %q, %v; want %v, %q", c.limit, c.after, got, next, err, c.want, c.next)
		}
	}
}
