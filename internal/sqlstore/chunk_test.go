package sqlstore

import (
	"errors"
	"fmt"
	"testing"
)

// inChunks writes rows in order, each once, and stops after a failed chunk.
func TestInChunks(t *testing.T) {
	t.Parallel()
	rows := make([]int, 2*chunkSizes[0]+3)
	for i := range rows {
		rows[i] = i
	}
	var got []int
	err := inChunks(rows, func(chunk []int) error { got = append(got, chunk...); return nil })
	if err != nil || fmt.Sprint(got) != fmt.Sprint(rows) {
		t.Errorf("of %d rows %d were written: %v, %v", len(rows), len(got), got, err)
	}
	refused, calls := errors.New("refused"), 0
	err = inChunks(rows, func([]int) error {
		if calls++; calls == 2 {
			return refused
		}
		return nil
	})
	if !errors.Is(err, refused) || calls != 2 {
		t.Errorf("%d chunks, of which the second failed: %v", calls, err)
	}
}
