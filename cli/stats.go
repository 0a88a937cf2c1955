package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// statsCmd is the verb stats.
type statsCmd struct {
	Since age      `default:"1h" placeholder:"AGE" help:"Period in which the attempts ended: 30m, 2h; default 1h."`
	Step  age      `placeholder:"AGE" help:"Length of a time step: 1m, 1h; default: one step."`
	By    []string `default:"type,outcome" placeholder:"FIELD" complete:"type,queue,outcome,error_kind,worker" help:"Grouping of the rows; default type,outcome."`
	Type  string   `filter:"" placeholder:"TYPE" help:"Only attempts of tasks of this type."`
	Queue string   `filter:"" placeholder:"NAME" help:"Only attempts of tasks of this queue."`
}

// Help is shown by stats --help.
func (statsCmd) Help() string {
	return "Counts ended attempts, with their run times and the time that their tasks were due before: P50 is the median, and 99 of 100 " +
		"values are at most P99. The times are accurate to 12.5 %. --by takes any of type, queue, outcome, error_kind and worker; " +
		"--step adds rows for each time step. Workers write their counts every five seconds. Counts by worker are kept for an hour, " +
		"all others for 90 days."
}

// Run implements the verb.
func (c *statsCmd) Run(ctx context.Context, s *session) error {
	now := time.Now()
	req := ops.StatsRequest{From: now.Add(-time.Duration(c.Since)), To: now, Step: time.Duration(c.Step), Type: c.Type, Queue: c.Queue}
	for _, by := range c.By {
		req.By = append(req.By, store.StatBy(by))
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		got, err := client.Stats(ctx, req)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(got)
		}
		if len(got.Rows) == 0 {
			s.printf("No attempt in namespace %q of %s is counted since %s.\n", client.Namespace(), s.store(), s.clock.When(got.From))
			return nil
		}
		s.list(s.statsTable(&got))
		return nil
	})
}

func (s *session) statsTable(got *ops.Stats) *table {
	t := newTable("FROM", "TYPE", "QUEUE", "WORKER", "OUTCOME", "ERROR", "ATTEMPTS", "RUN P50", "P90", "P99", "MEAN", "WAIT P50", "P90", "P99")
	t.gives = []give{{"TYPE", 20}, {"QUEUE", 10}, {"WORKER", 0}}
	for i := range got.Rows {
		r := &got.Rows[i]
		from := cell{}
		if got.Step > 0 {
			from = s.when(r.From)
		}
		took := func(d time.Duration) cell { return plain(text.Took(d)) }
		t.add(from, plain(text.OneLine(r.Type, explain.MaxNote)), plain(text.OneLine(r.Queue, explain.MaxNote)), plain(r.Worker),
			plain(string(r.Outcome)), plain(string(r.ErrorKind)), plain(strconv.FormatInt(r.Count, 10)),
			took(r.Run.P50), took(r.Run.P90), took(r.Run.P99), took(r.Run.Mean), took(r.Wait.P50), took(r.Wait.P90), took(r.Wait.P99))
	}
	return t
}
