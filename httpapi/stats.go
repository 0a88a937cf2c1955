package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

var statsParams = []param{
	query("from", "date-time", "Attempts that ended since then; default an hour before `to`. Rounded down to a multiple of the step."),
	query("to", "date-time", "Attempts that ended before that; default now."),
	query("step", "string", "The time range of a row, as 1m: rounded up to a multiple of 10s, of 1m if `from` is over an hour ago, of 1h if it is over a week ago. Default: a single row."),
	query("by", "string", "The grouping of rows: type, queue, outcome, error_kind, worker; several with commas.").repeated(),
	query("type", "string", "Only attempts of tasks of this type."),
	query("queue", "string", "Only attempts of tasks of this queue."),
}

// asParams renames the fields of a StatsRequest to their parameters.
var asParams = strings.NewReplacer("From", "from", "To", "to", "Step", "step", "By[", "by[")

// stats writes statistics of attempts.
func (c *call) stats() (err error) {
	req := ops.StatsRequest{Type: c.get("type"), Queue: c.get("queue")}
	if req.From, err = c.instant("from"); err != nil {
		return err
	}
	if req.To, err = c.instant("to"); err != nil {
		return err
	}
	if text := c.get("step"); text != "" {
		if req.Step, err = time.ParseDuration(text); err != nil || req.Step <= 0 {
			return badParam("step", "%q: want a duration like 10s, 5m or 1h", text)
		}
	}
	for _, by := range c.list("by") {
		if !slices.Contains(ops.StatsBys(), store.StatBy(by)) {
			return badParam("by", "%q: want one or more of %v", by, ops.StatsBys())
		}
		req.By = append(req.By, store.StatBy(by))
	}
	ctx, cancel := c.context()
	defer cancel()
	got, err := c.api.client.Stats(ctx, req)
	switch {
	case errors.Is(err, weaver.ErrInvalidOption):
		return statsQuery.of("%s", asParams.Replace(err.Error()))
	case errors.Is(err, errors.ErrUnsupported):
		return notFound.of("The store of this server keeps no statistics.")
	case err != nil:
		return err
	}
	return c.write(http.StatusOK, got)
}
