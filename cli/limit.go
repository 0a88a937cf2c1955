package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
)

// limitCmd groups the verbs of limits.
type limitCmd struct {
	Ls  limitLsCmd  `cmd:"" help:"List limits with their use."`
	Set limitSetCmd `cmd:"" help:"Set or change a limit."`
	Rm  limitRmCmd  `cmd:"" help:"Delete a limit."`
}

// Help is shown by limit --help.
func (limitCmd) Help() string {
	return "A limit restricts the tasks of a queue (queue:NAME), a type (type:NAME), a label's value (label:KEY=VALUE) or the key of a rate " +
		"(rate:KEY) in all processes, and holds at once; docs/limits.md has the whole."
}

type limitLsCmd struct {
	After string `placeholder:"NAME" help:"Only limits with names after this."`
	Limit int    `default:"100" help:"Maximum number of limits, up to 1000."`
}

// Run implements the verb.
func (c *limitLsCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		list, err := client.Limits(ctx, c.After, c.Limit)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"limits": orEmpty(list)})
		}
		if len(list) == 0 {
			s.printf("No limit is set in namespace %q of %s.\n", client.Namespace(), s.store())
			return nil
		}
		t := newTable("NAME", "STARTS", "RUNNING", "PENDING", "WEIGHT", "OPENS", "BY", "REASON")
		t.gives = []give{{"NAME", 24}, {"REASON", 12}}
		for i := range list {
			l := &list[i]
			rate, running, pending, weight := "", "", "", ""
			if l.Starts > 0 {
				rate = fmt.Sprintf("%d in %s", l.Starts, l.Per)
				if l.Burst > 1 {
					rate += fmt.Sprintf(", %d at once", l.Burst)
				}
			}
			if l.Running > 0 {
				running = fmt.Sprintf("%d of %d", l.InUse, l.Running)
			}
			if l.Pending > 0 {
				pending = fmt.Sprintf("%d of %d", min(l.Waiting, l.Pending), l.Pending)
			}
			if l.Weight > 0 {
				weight = strconv.Itoa(l.Weight)
			}
			t.add(plain(text.OneLine(l.Name, explain.MaxNote)), plain(rate), plain(running), plain(pending), plain(weight), s.when(l.OpenAt),
				plain(text.OneLine(l.By, explain.MaxNote)), plain(text.OneLine(l.Reason, explain.MaxNote)))
		}
		s.list(t)
		return nil
	})
}

type limitSetCmd struct {
	Name    string `arg:"" help:"queue:NAME, type:NAME, label:KEY=VALUE or rate:KEY."`
	Rate    string `placeholder:"N/PERIOD" help:"How many tasks start in a period, evenly spaced: 10/s, 600/1m, 1000/24h."`
	Burst   int    `placeholder:"N" help:"How many of them may start at once after a pause; default 1."`
	Running int    `placeholder:"N" help:"How many tasks run at once."`
	Pending int    `placeholder:"N" help:"How many tasks of a queue wait to start; further enqueues are refused."`
	Weight  int    `placeholder:"N" help:"How many tasks of a label's value start in each turn (FairBy); default 1."`
	auditFlags
}

// Run implements the verb. The limit becomes what the flags say: what they leave out is not limited.
func (c *limitSetCmd) Run(ctx context.Context, s *session) error {
	l := weaver.Limit{Burst: c.Burst, Running: c.Running, Pending: c.Pending, Weight: c.Weight}
	if c.Rate != "" {
		var err error
		if l.Starts, l.Per, err = parseRate(c.Rate); err != nil {
			return badInput("For example --rate 10/s, --rate 600/1m or --rate 1000/24h.", "limit set %s: %w", c.Name, err)
		}
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		if err := client.SetLimit(ctx, c.Name, l, c.options()...); err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"limit": c.Name})
		}
		s.printf("Limit %s is set; `%s` shows its use.\n", text.OneLine(c.Name, explain.MaxNote), s.command("limit", "ls"))
		return nil
	})
}

// parseRate reads N/PERIOD; a period without a number is one of it.
func parseRate(rate string) (n int, per time.Duration, err error) {
	count, period, ok := strings.Cut(rate, "/")
	n, bad := strconv.Atoi(count)
	if !ok || bad != nil || period == "" {
		return 0, 0, fmt.Errorf("the rate is %q: want a number, a slash and a period", rate)
	}
	if period[0] < '0' || period[0] > '9' {
		period = "1" + period
	}
	if per, err = time.ParseDuration(period); err != nil {
		return 0, 0, fmt.Errorf("the period of the rate is %q: want a duration like s, 1m or 24h", period)
	}
	return n, per, nil
}

type limitRmCmd struct {
	Name string `arg:"" help:"Name of the limit."`
	auditFlags
}

// Run implements the verb.
func (c *limitRmCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		if err := client.DeleteLimit(ctx, c.Name, c.options()...); err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"limit": c.Name})
		}
		s.printf("Limit %s is deleted.\n", text.OneLine(c.Name, explain.MaxNote))
		return nil
	})
}

// parseRateLimit reads KEY=N/PERIOD[,BURST]; the key may contain anything. The client checks the numbers.
func parseRateLimit(text string) (weaver.Option, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return nil, errors.New("want a key, an equals sign and a rate")
	}
	rate, size, some := strings.Cut(text[i+1:], ",")
	n, per, err := parseRate(rate)
	if err != nil {
		return nil, err
	}
	burst := 1
	if some {
		if burst, err = strconv.Atoi(size); err != nil {
			return nil, fmt.Errorf("the burst is %q: want a number", size)
		}
	}
	return weaver.RateLimit(text[:i], n, per, burst), nil
}
