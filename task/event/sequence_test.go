package event_test

import (
	"testing"

	"github.com/goweaver/weaver/task/event"
)

// Numbers increase strictly, whatever the counts.
func TestSequence(t *testing.T) {
	t.Parallel()
	const half = 1 << 23
	numbers := []int64{
		event.Sequence(1, 0), event.Sequence(1, 1), event.Sequence(1, 2), event.Sequence(1, half-1),
		event.SequenceWithoutLease(1, 0), event.SequenceWithoutLease(1, 1), event.SequenceWithoutLease(1, half-1),
		event.Sequence(2, 1), event.SequenceWithoutLease(2, 0), event.Sequence(1<<38, 1),
	}
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			t.Errorf("number %d is %d, after %d", i, numbers[i], numbers[i-1])
		}
	}
	if got := event.Sequence(3, 5); got != 3<<24+5 {
		t.Errorf("the fifth event of epoch 3 has the number %d", got)
	}
	if got := event.SequenceWithoutLease(3, 0); got != 3<<24+half {
		t.Errorf("the first one without a lease has the number %d", got)
	}
	if event.Sequence(1, half+7) != event.Sequence(1, half-1) || event.SequenceWithoutLease(1, 2*half) != 2<<24-1 || event.Sequence(1, -1) != 1<<24 {
		t.Error("a number leaves its epoch, or its half")
	}
}
