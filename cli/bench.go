package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/storebench"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// benchCmd is the verb bench.
type benchCmd struct {
	Tasks int `default:"20000" placeholder:"N" help:"Number of empty tasks, 100 to 1000000; default 20000."`
	Slots int `default:"64" placeholder:"N" help:"Number of concurrent tasks; default 64."`
}

// Help is shown by bench --help.
func (benchCmd) Help() string {
	return "Measures the store from this machine, with everything that users get: every call returns after its data is durable, and " +
		"attempts and steps are recorded. P50 and P99 are for one call, and for one task from its enqueue to the start of its handler. " +
		"The tasks run in their own namespace, which no other worker serves, and are removed at the end. The bench writes at full " +
		"speed: other programs of the store are slower meanwhile."
}

// benched is the JSON output of bench.
type benched struct {
	Store     string              `json:"store"`
	Namespace string              `json:"namespace"`
	Slots     int                 `json:"slots"`
	Figures   []storebench.Figure `json:"figures"`
}

// benchRows maps figures to their labels.
var benchRows = map[string]string{
	storebench.EnqueueOne:  "enqueue, one after the other",
	storebench.EnqueueMany: "enqueue, 1,000 a call",
	storebench.Enqueue:     "enqueue, 50 callers",
	storebench.Run:         "run tasks that do nothing",
	storebench.Steps:       "steps of one task",
	storebench.Start:       "start on an idle worker",
}

// removeFor limits the time for removing the tasks of an interrupted bench.
const removeFor = time.Minute

// Run implements the verb.
func (c *benchCmd) Run(ctx context.Context, s *session) error {
	switch {
	case c.Tasks < 100 || c.Tasks > 1_000_000:
		return badInput("", "--tasks %d: want 100 to 1000000", c.Tasks)
	case c.Slots < 1 || c.Slots > 10_000:
		return badInput("", "--slots %d: want 1 to 10000", c.Slots)
	}
	got := benched{Store: s.store(), Namespace: "bench-" + strings.ToLower(task.NewIDs(nil).New().String()), Slots: c.Slots}
	return s.withWork(ctx, func(st store.Store) (err error) {
		defer func() {
			removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeFor)
			defer cancel()
			if failed := storebench.Remove(removing, st, got.Namespace); failed != nil {
				err = errors.Join(err, fmt.Errorf("remove the tasks of the namespace %q: %w; weaver task prune --yes --older-than 0d --namespace %[1]s removes those that ran", got.Namespace, failed))
			}
		}()
		if !s.json() {
			s.printf("%s, %s in the namespace %s.\n", got.Store, text.Plural(c.Tasks, "task"), got.Namespace)
		}
		err = storebench.Measure(ctx, storebench.Config{
			Store: st, Namespace: got.Namespace, Tasks: c.Tasks, Slots: c.Slots,
			Measured: func(f storebench.Figure) { got.Figures = append(got.Figures, f) },
		})
		if s.json() {
			return errors.Join(err, s.writeJSON(got))
		}
		s.list(got.table())
		return err
	})
}

func (b *benched) table() *table {
	t := newTable("", "COUNT", "PER SECOND", "P50", "P99")
	for _, f := range b.Figures {
		t.add(plain(benchRows[f.Name]), plain(strconv.Itoa(f.Count)), plain(strconv.Itoa(int(f.PerSecond))), plain(precise(f.P50)), plain(precise(f.P99)))
	}
	return t
}

// precise formats the duration of one call; "" if it was not measured.
func precise(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(10 * time.Microsecond).String()
}
