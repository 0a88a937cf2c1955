package option

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/goweaver/weaver/task"
)

// The options of a task. To add one: CONTRIBUTING.md.
var (
	IdempotencyKey = &Of[string]{Spec: Spec{
		Name: "IdempotencyKey", Key: "idempotency_key", In: HTTP, Example: "order-17",
		Doc: "If a task of the type has this key, the enqueue returns that task and stores no new one.",
	}, Check: CheckKey, in: func(n *task.New) *string { return &n.IdempotencyKey }}

	Coalesce = &Of[bool]{Spec: Spec{
		Name: "Coalesce", Key: "coalesce", In: HTTP, Example: true,
		Doc: "An unstarted task with the same key takes the input, and no second task is stored.",
	}, in: func(n *task.New) *bool { return &n.Coalesce }}

	RequireSameInput = &Of[bool]{Spec: Spec{
		Name: "RequireSameInput", Key: "require_same_input", In: HTTP, Example: true, Short: true, // clients look
		Doc: "If a task with the IdempotencyKey has another input, the enqueue is a conflict.",
	}, in: func(n *task.New) *bool { return &n.RequireSameInput }}

	Queue = &Of[string]{Spec: Spec{
		Name: "Queue", Key: "queue", In: Type | Child | HTTP, Example: "reports", Default: strconv.Quote(task.DefaultQueue), Short: true,
		Doc: "The queue in which the task waits.",
	}, Check: CheckKey, in: func(n *task.New) *string { return &n.Queue }}

	Priority = &Of[int]{
		Spec: Spec{
			Name: "Priority", Key: "priority", In: Type | Child | HTTP | Pipeline, Example: task.DefaultPriority, Least: task.MinPriority, Most: task.MaxPriority, Default: strconv.Itoa(task.DefaultPriority), Short: true,
			Doc: "Orders due tasks: 1 first, 9 last.",
		},
		Check: want(func(p int) bool { return p >= task.MinPriority && p <= task.MaxPriority }, fmt.Sprintf("%d (first) to %d (last)", task.MinPriority, task.MaxPriority)),
		in:    func(n *task.New) *int { return &n.Priority },
	}

	// The last one of Delay and At counts.
	Delay = &Of[time.Duration]{
		Spec: Spec{
			Name: "Delay", Key: "delay", In: Child | HTTP, Example: time.Minute,
			Doc: "The task is due this long after its enqueue.",
		},
		Check: want(func(d time.Duration) bool { return d >= 0 }, "0 or more"),
		in:    func(n *task.New) *time.Duration { n.At = time.Time{}; return &n.Delay },
	}
	At = &Of[time.Time]{
		Spec: Spec{
			Name: "At", Key: "at", In: Child | HTTP, Example: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
			Doc: "The task is due at this instant.",
		},
		Check: want(ValidTime, "an instant before the year 10000"),
		in:    func(n *task.New) *time.Time { n.Delay = 0; return &n.At },
	}
	ExpireAfter = &Of[time.Duration]{
		Spec: Spec{
			Name: "ExpireAfter", Key: "expire_after", In: Type | Child | HTTP, Example: time.Hour,
			Doc: "A task that has not ended this long after its enqueue is cancelled.",
		},
		Check: want(func(d time.Duration) bool { return d > 0 }, "a positive duration"),
		in:    func(n *task.New) *time.Duration { return &n.ExpireAfter },
	}

	MaxAttempts = &Of[int]{
		Spec: Spec{
			Name: "MaxAttempts", Key: "max_attempts", In: Type | Child | HTTP, Example: 3, Default: strconv.Itoa(task.DefaultMaxAttempts), Short: true,
			Doc: "The maximum number of failed attempts before the task fails.",
		},
		Check: want(atLeast(1), "at least 1"),
		in:    func(n *task.New) *int { return &n.MaxAttempts },
	}
	MaxRepairs = &Of[int]{
		Spec: Spec{
			Name: "MaxRepairs", Key: "max_repairs", In: Type | HTTP, Example: 1, Default: strconv.Itoa(task.DefaultMaxRepairs), Short: true,
			Doc: "The maximum number of repairs of its input; 0: no repair.",
		},
		Check: want(atLeast(0), "0 or more"),
		in:    func(n *task.New) *int { return &n.MaxRepairs },
	}
	MaxNoProgress = &Of[int]{
		Spec: Spec{
			Name: "MaxNoProgress", Key: "max_no_progress", In: Type | Child | HTTP, Example: 20, Default: strconv.Itoa(task.DefaultMaxNoProgress), Short: true,
			Doc: "The maximum number of consecutive attempts without a new record.",
		},
		Check: want(atLeast(1), "at least 1"),
		in:    func(n *task.New) *int { return &n.MaxNoProgress },
	}
	CleanupWhenCancelled = &Of[bool]{Spec: Spec{
		Name: "CleanupWhenCancelled", Key: "cleanup_when_cancelled", In: Type | Child | HTTP, Example: true, Short: true,
		Doc:   "A task that is cancelled while it waits runs once more to clean up.",
		Label: "when cancelled", On: "its cleanups run before it ends",
	}, in: func(n *task.New) *bool { return &n.CleanupWhenCancelled }}
	MaxCost = &Of[int64]{
		Spec: Spec{
			Name: "MaxCost", Key: "max_cost", In: Type | Child | HTTP, Example: int64(5_000_000), Short: true,
			Doc: "The maximum cost of its steps, in micro-units.",
		},
		Check: want(func(n int64) bool { return n >= 0 }, "micro-units, or 0 for no limit"),
		in:    func(n *task.New) *int64 { return &n.MaxCost },
	}
	Backoff = &Of[time.Duration]{
		Spec: Spec{
			Name: "Backoff", Key: "backoff", In: Type | Child | HTTP, Example: time.Second, Default: "2s", Short: true,
			Doc: "The pause before the second attempt; it doubles for each further attempt.",
		},
		Check: want(positive, "at least a microsecond"),
		in:    func(n *task.New) *time.Duration { return &n.Backoff },
	}
	BackoffMax = &Of[time.Duration]{
		Spec: Spec{
			Name: "BackoffMax", Key: "backoff_max", In: Type | Child | HTTP, Example: time.Minute, Default: "1h", Short: true,
			Doc: "The longest pause between attempts.",
		},
		Check: want(positive, "at least a microsecond"),
		in:    func(n *task.New) *time.Duration { return &n.BackoffMax },
	}
	Timeout = &Of[time.Duration]{
		Spec: Spec{
			Name: "Timeout", Key: "timeout", In: Type | Child | HTTP, Example: 2 * time.Minute, Short: true,
			Doc: "The maximum duration of one attempt.",
		},
		Check: want(func(d time.Duration) bool { return d == 0 || positive(d) }, "at least a microsecond, or 0 for none"),
		in:    func(n *task.New) *time.Duration { return &n.Timeout },
	}
	FairBy = &Of[string]{
		Spec: Spec{
			Name: "FairBy", Key: "fair_by", In: Type | Child | HTTP, Example: "tenant", Short: true,
			Doc:   "The label by whose values tasks of the same type, queue and priority take turns.",
			Label: "takes turns by",
		},
		Check: CheckKey,
		in:    func(n *task.New) *string { return &n.FairBy },
	}
	RateLimit = &Of[task.Rate]{
		Spec: Spec{
			Name: "RateLimit", Key: "rate_limit", In: Type | Child | HTTP, Short: true,
			Example: task.Rate{Key: "partner", Starts: 10, Per: time.Second, Burst: 5},
			Doc:     "How often tasks with its key start, across all processes.",
		},
		Check: checkRate,
		in:    func(n *task.New) *task.Rate { return &n.RateLimit },
	}
	SchemaVersion = &Of[int]{
		Spec: Spec{
			Name: "SchemaVersion", Key: "schema_version", In: Type | HTTP, Example: 1, Default: "1", Short: true,
			Doc: "The version of the input within one major version of the task type.",
		},
		Check: want(atLeast(1), "at least 1"),
		in:    func(n *task.New) *int { return &n.SchemaVersion },
	}
)

// Options with more than one value.
var (
	concurrencyKey = &Spec{
		Name: "ConcurrencyKey", Key: "concurrency_key", In: Child | HTTP, Example: "database",
		Doc: "At most concurrency_limit (default 1) tasks with this key run at once.", fields: []string{"ConcurrencyKey", "ConcurrencyLimit"},
		from: func(field func(string) reflect.Value) []Func {
			key, limit := field("ConcurrencyKey"), field("ConcurrencyLimit")
			if !key.IsValid() || key.IsZero() && limit.IsZero() {
				return nil
			}
			return []Func{ConcurrencyKey(key.String(), max(int(limit.Int()), 1))}
		},
	}
	labels = &Spec{
		Name: "Label", Key: "labels", In: Type | Child | HTTP, Example: map[string]string{"team": "data"}, Short: true,
		Doc: "Values that lists can filter by.", fields: []string{"Labels"}, from: pairs("Labels", Label),
	}
	metadata = &Spec{
		Name: "Metadata", Key: "metadata", In: Type | Child | HTTP, Example: map[string]string{"trace": "17"}, Short: true,
		Doc: "Values that the handler can read.", from: pairs("Metadata", Metadata),
	}
)

// table has all options, in the order in which the fields of a struct are applied.
var table = []*Spec{
	IdempotencyKey.row(), concurrencyKey, Coalesce.row(), RequireSameInput.row(), Queue.row(), Priority.row(), Delay.row(), At.row(), ExpireAfter.row(),
	MaxAttempts.row(), MaxRepairs.row(), MaxNoProgress.row(), CleanupWhenCancelled.row(), MaxCost.row(), Backoff.row(), BackoffMax.row(), Timeout.row(),
	FairBy.row(), RateLimit.row(), SchemaVersion.row(), labels, metadata,
}

// ConcurrencyKey is weaver.ConcurrencyKey.
func ConcurrencyKey(key string, limit ...int) Func {
	return func(s *Settings) {
		n := 1
		if len(limit) > 0 {
			n = limit[0]
		}
		if n < 1 || len(limit) > 1 {
			s.Problem("ConcurrencyKey(%q, %v): want one limit of at least 1", key, limit)
			return
		}
		if err := CheckKey("ConcurrencyKey", key); err != nil {
			s.Errs = append(s.Errs, err)
			return
		}
		s.Task.ConcurrencyKey, s.Task.ConcurrencyLimit = key, n
	}
}

// Label is weaver.Label.
func Label(key, value string) Func {
	return func(s *Settings) { s.attach(&s.Task.Labels, "Label", key, value, checkLabel) }
}

// Metadata is weaver.Metadata.
func Metadata(key, value string) Func {
	return func(s *Settings) { s.attach(&s.Task.Metadata, "Metadata", key, value, task.CheckText) }
}

func checkRate(option string, r task.Rate) error {
	if err := CheckKey(option, r.Key); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return fmt.Errorf("%s(%q): %w", option, r.Key, err)
	}
	return nil
}
