package task_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
)

func TestNextExpiry(t *testing.T) {
	t.Parallel()
	list := []task.Expiry{{After: time.Hour}, {After: time.Minute}, {After: time.Hour}}
	for within, want := range map[time.Duration]time.Duration{0: time.Minute, time.Minute: time.Hour, 2 * time.Minute: time.Hour, time.Hour: 0} {
		if got := task.NextExpiry(list, within); got != want {
			t.Errorf("NextExpiry(%v) = %v, want %v", within, got, want)
		}
	}
	if got := task.NextExpiry(nil, 0); got != 0 {
		t.Errorf("without fields: %v", got)
	}
}
