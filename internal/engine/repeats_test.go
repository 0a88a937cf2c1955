package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A repeated warning is logged once a minute, with the number of omitted ones; another warning is logged at once.
func TestRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var r repeats
		full := errors.New("disk full")
		for range 180 {
			r.warn(log, "claim tasks", full, "retry_in", time.Second)
			time.Sleep(time.Second)
		}
		r.warn(log, "claim tasks", errors.New("another"))
		got := out.String()
		if n := strings.Count(got, "disk full"); n != 3 || strings.Count(got, "repeated=59") != 2 || !strings.Contains(got, "error=another") {
			t.Errorf("%d lines of one warning:\n%s", n, got)
		}
		for i := range 3 * maxRepeats {
			r.warn(log, "claim tasks", fmt.Errorf("error %d", i))
		}
		if len(r.seen) > maxRepeats {
			t.Errorf("%d are remembered", len(r.seen))
		}
	})
}
