package view_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/pipeline/view"
)

type secret struct{}

func (secret) LogValue() slog.Value { return slog.StringValue("hidden") }

func TestLogger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("fetch")
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.Lines}, j)
		log := m.Logger()
		log.Debug("no")
		log.Info("no")
		log.Warn("reap", "error", errors.New("it is\nlocked"), "retry_in", 2*time.Second, "n", 3, "s", secret{}, "empty", "")
		log.With("task_id", j.Task("fetch").ID, "task_type", "x.y.z.v1").WithGroup("g").With("a", 1).WithGroup("h").Error("lost", "b", true, slog.Group("i", "c", 2.5), slog.Attr{})
		log.Warn("another", "task_id", view.ID(77), "at", view.Start, slog.Group("", "flat", 1))
		end()
		wantText(t, out.String(), `
00:00:00 WARN reap error="it is\nlocked" retry_in=2s n=3 s=hidden empty=""
00:00:00 fetch: ERROR lost g.a=1 g.h.b=true g.h.i.c=2.5
00:00:00 WARN another task_id=`+view.ID(77).String()+` at=2000-01-01T00:00:00Z flat=1
`)
	})
}
