package weaver_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// The clocks of machines and store differ by ten minutes, and both engines have one name: nothing runs twice, no
// handler ends early, delays and retries have their length, and each engine logs it once.
func TestDelivery_ClocksAndNames(t *testing.T) {
	for _, by := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New()
			st.ShiftClock(by)
			var said bytes.Buffer
			log := slog.New(slog.NewTextHandler(&said, nil))
			var began, ended atomic.Int64
			f := newFleetOn(t, st, 2, delivery.NewMemory(), time.Second, storehook.Hooks{}, func(_ int, cfg *weaver.Config) {
				cfg.Lease, cfg.Logger = 6*time.Second, log
				cfg.Handlers = []weaver.Handler{hintedType.Handler(func(ctx context.Context, _ int) (int, error) {
					began.Add(1)
					select {
					case <-ctx.Done():
						ended.Add(1)
						return 0, ctx.Err()
					case <-time.After(20 * time.Second):
					}
					if weaver.Current(ctx).AttemptNo == 1 {
						return 0, errors.New("once more")
					}
					return 0, nil
				})}
			})
			for n := range 5 {
				if _, err := hintedType.Enqueue(t.Context(), f.client, n, weaver.Backoff(time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			late, err := hintedType.Enqueue(t.Context(), f.client, 5, weaver.Delay(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(55 * time.Second)
			if began.Load() != 10 {
				t.Errorf("%v: %d attempts began, want two of each of five tasks", by, began.Load())
			}
			time.Sleep(time.Minute)
			if k, err := late.Get(t.Context()); err != nil || k.State != task.Succeeded || began.Load() != 12 || ended.Load() != 0 {
				t.Errorf("%v: the late task is %v (%v), %d attempts began, %d were ended", by, k.State, err, began.Load(), ended.Load())
			}
			f.end(0)
			if n := strings.Count(said.String(), "clock differs"); n != 2 || !strings.Contains(said.String(), "ahead="+(-by).String()) {
				t.Errorf("%v: the log says it %d times, want once for each engine:\n%s", by, n, &said)
			}
		})
	}
}
