package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// LaneGroup returns the group of a task's lane: the value of the label by which it takes turns, and
// the key of its rate limit. "": it has neither.
func LaneGroup(o task.Options, labels map[string]string) string {
	if o.FairBy == "" && o.RateLimit.Key == "" {
		return ""
	}
	fair := ""
	if o.FairBy != "" {
		fair = o.FairBy + "=" + labels[o.FairBy]
	}
	return strconv.Itoa(len(fair)) + ":" + fair + o.RateLimit.Key
}

// SplitGroup returns the parts of a group: fair is LABEL=VALUE, or "" if its tasks take no turns;
// rate is the key of their rate limit, or "".
func SplitGroup(group string) (fair, rate string) {
	size, rest, _ := strings.Cut(group, ":")
	n, _ := strconv.Atoi(size)
	n = max(0, min(n, len(rest)))
	return rest[:n], rest[n:]
}

// The kinds of limits: a name is a kind and what it limits.
const (
	LimitQueue = "queue:" // queue:NAME
	LimitType  = "type:"  // type:NAME
	LimitLabel = "label:" // label:KEY=VALUE, of tasks with FairBy(KEY)
	LimitRate  = "rate:"  // rate:KEY, of tasks with RateLimit(KEY, …), instead of their own
)

// LimitNames returns the names of the limits that apply to the tasks of a lane, whether they are set
// or not.
func LimitNames(queue, taskType, group string) []string {
	names := []string{LimitQueue + queue, LimitType + taskType}
	if group == "" {
		return names
	}
	fair, rate := SplitGroup(group)
	if fair != "" {
		names = append(names, LimitLabel+fair)
	}
	if rate != "" {
		names = append(names, LimitRate+rate)
	}
	return names
}

// Limit restricts the tasks of a queue or a type, with a label, or with the key of a rate limit. It
// holds across all processes. The zero value of each field restricts nothing.
type Limit struct {
	Starts int           // how many tasks start in every Per, evenly spaced
	Per    time.Duration // of Starts
	Burst  int           // how many of them may start at once after a pause; 0: 1

	Running int // how many tasks run at once
	Pending int // how many tasks of a queue wait to start; an enqueue beyond is ErrQueueFull
	Weight  int // of a label: how many of its tasks start in each turn (FairBy); 0: 1
}

// Rate returns the rate of the limit; a zero rate limits nothing.
func (l *Limit) Rate() task.Rate {
	return task.Rate{Starts: l.Starts, Per: l.Per, Burst: max(l.Burst, 1)}
}

// LimitRow is a limit as it is stored, with its use.
type LimitRow struct {
	Name string
	Limit
	Set       bool // false: nobody set it; a handler asked it to rest, or tasks bring its rate along
	UpdatedAt time.Time
	By        string
	Reason    string

	Arrival   time.Time // theoretical arrival time of the next start (rules.Arrival); zero: no recent start
	RestUntil time.Time // a handler asked it to rest until then; zero: none did
	InUse     int       // running tasks, if Running is set
	Waiting   int       // tasks of the queue that wait to start, if Pending is set; at most Pending + 1
}

// LimitFilter selects limits. Its zero value selects those that are set, by name.
type LimitFilter struct {
	Names []string // only these, whether they are set or not; at most 1,000
	After string   // without Names: only names greater than this
	Limit int      // maximum number; 0: 100, at most 1,000
}

// LimitPage is the answer to a LimitFilter.
type LimitPage struct {
	Limits []LimitRow
	Now    time.Time // the store's time
}

// SetLimit sets, changes or deletes a limit.
type SetLimit struct {
	Audit
	Name   string
	Limit  Limit
	Delete bool
}

// Rest asks the tasks of a limit, or of the key of a rate limit, not to start for a time. A longer
// rest that was asked for before stays.
type Rest struct {
	Name string
	For  time.Duration
}

func (SetLimit) command() {}
func (Rest) command()     {}

// CheckLimitName returns an error that says what is wrong with the name of a limit, or nil.
func CheckLimitName(name string) error {
	for _, kind := range []string{LimitQueue, LimitType, LimitLabel, LimitRate} {
		of, ok := strings.CutPrefix(name, kind)
		if !ok {
			continue
		}
		if kind == LimitLabel {
			label, value, ok := strings.Cut(of, "=")
			if !ok || label == "" {
				return fmt.Errorf("limit %q: want label:KEY=VALUE", name)
			}
			if err := task.CheckKey("limit: label", label); err != nil {
				return err
			}
			return task.CheckKey("limit: value", value)
		}
		if of == "" {
			return fmt.Errorf("limit %q names nothing: want a name after %q", name, kind)
		}
		return task.CheckKey("limit", of)
	}
	return fmt.Errorf("limit %q: want queue:NAME, type:NAME, label:KEY=VALUE or rate:KEY", name)
}

// CheckLimit returns an error that says what is wrong with a limit, or nil.
func CheckLimit(name string, l *Limit) error {
	if err := CheckLimitName(name); err != nil {
		return err
	}
	refused := func(format string, args ...any) error {
		return fmt.Errorf("limit %q: "+format, append([]any{name}, args...)...)
	}
	switch {
	case *l == (Limit{}):
		return refused("it limits nothing: give starts, running, pending or a weight, or delete it")
	case l.Starts < 0 || l.Running < 0 || l.Pending < 0 || l.Weight < 0 || l.Burst < 0:
		return refused("starts, burst, running, pending and weight must not be negative")
	case l.Starts == 0 && (l.Per != 0 || l.Burst != 0):
		return refused("a period or a burst without starts: say how many tasks may start in it, at least 1")
	case l.Pending > 0 && !strings.HasPrefix(name, LimitQueue):
		return refused("only a queue can limit its pending tasks")
	case l.Weight > 0 && !strings.HasPrefix(name, LimitLabel):
		return refused("only the value of a label can have a weight (FairBy)")
	case l.Running > 0 && strings.HasPrefix(name, LimitRate):
		return refused("the key of a rate limits starts, not running tasks: use a concurrency key")
	case l.Weight > MaxWeight:
		return refused("a weight of %d: want at most %d", l.Weight, MaxWeight)
	case l.Starts > 0:
		if err := l.Rate().Check(); err != nil {
			return refused("%w", err)
		}
	}
	return nil
}

// MaxWeight is the largest weight of a label.
const MaxWeight = 1000

// OpenAt returns the time from which on a rate and a rest let a task start, zero if they say nothing.
func (l *LimitRow) OpenAt() time.Time {
	open := l.RestUntil
	if l.Starts > 0 && !l.Arrival.IsZero() {
		r := l.Rate()
		if at := l.Arrival.Add(-r.Spacing() * time.Duration(r.Burst-1)); at.After(open) {
			open = at
		}
	}
	return open
}
