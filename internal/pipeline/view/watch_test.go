package view

import (
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0:00", 1234 * time.Millisecond: "0:01", 42 * time.Second: "0:42", 59970 * time.Millisecond: "0:59",
		65 * time.Second: "1:05", time.Hour + 2*time.Minute + 3*time.Second: "1:02:03", 50 * time.Hour: "50:00:00",
	} {
		if got := watch(d); got != want {
			t.Errorf("watch(%s) = %s, want %s", d, got, want)
		}
	}
}
