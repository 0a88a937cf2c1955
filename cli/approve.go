package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/internal/typo"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// refuseHint tells how to refuse an approval.
const refuseHint = `To approve, leave --input out; to refuse, give --input '{"approved": false, "reason": "…"}'.`

// answer answers a task that waits for an approval with --input; without --input it approves. It answers exactly the
// question that was read, not a later one.
func (c *taskUnblockCmd) answer(ctx context.Context, client *weaver.Client, t *weaver.TaskInfo, raw json.RawMessage) error {
	if t.State != task.Blocked {
		return badInput("", "unblock: task %s no longer waits for an answer: %s%s", explain.Label(t), answered(t), t.State)
	}
	a, err := approvalOf(raw)
	if err != nil {
		return err
	}
	a.By = cmp.Or(a.By, c.who())
	if !a.Approved {
		a.Reason = cmp.Or(a.Reason, c.Reason)
	}
	now := time.Now()
	if open := openFor(t); open > 0 && now.Sub(t.StartedAt) >= open {
		if _, err := expireApprovals(ctx, client, []weaver.TaskInfo{*t}, now); err != nil {
			return err
		}
		return badInput("`weaver retry` asks again.", "unblock: the question of task %s was open for %s, until %s: the task fails for it", explain.Label(t), text.Setting(open), t.StartedAt.Add(open).UTC().Format(time.RFC3339))
	}
	opts := c.options()
	if t.Error != nil && t.Error.Ask != "" {
		opts = append(opts, weaver.ForAsk(cmp.Or(c.Ask, t.Error.Ask)))
	}
	return client.Unblock(ctx, t.ID, a, opts...)
}

// openFor returns the time for which the question of an approval stays open; 0 means without limit.
func openFor(t *weaver.TaskInfo) time.Duration {
	var in builtin.ApproveInput
	if json.Unmarshal(t.Input, &in) != nil {
		return 0
	}
	return max(0, time.Duration(in.Timeout))
}

// answered names the person who answered a task that no longer waits. It returns the beginning of a sentence that the
// task's state ends.
func answered(t *weaver.TaskInfo) string {
	var a builtin.Approval
	switch {
	case len(t.UnblockInput) == 0 || json.Unmarshal(t.UnblockInput, &a) != nil:
		return "it is "
	case a.Expired:
		return "nobody answered in time, and it is "
	case a.Approved:
		return cmp.Or(a.By, "somebody") + " approved, and it is "
	}
	return cmp.Or(a.By, "somebody") + " refused, and it is "
}

// approvalKeys are the keys of an answer object.
var approvalKeys = []string{"approved", "by", "reason", "input"}

// approvalOf parses an answer: true or false, an object with "approved", or any other value, which approves and
// becomes the input of the output.
func approvalOf(raw json.RawMessage) (builtin.Approval, error) {
	raw = bytes.TrimSpace(raw)
	var said string
	var fields map[string]json.RawMessage
	switch {
	case len(raw) == 0, string(raw) == "true":
		return builtin.Approval{Approved: true}, nil
	case string(raw) == "false":
		return builtin.Approval{}, nil
	case string(raw) == "null":
		return builtin.Approval{}, badInput(refuseHint, "--input: null is not an answer")
	case json.Unmarshal(raw, &said) == nil && soundsLikeNo(said):
		return builtin.Approval{}, badInput(refuseHint, "--input: %q would approve, as any text does", said)
	case json.Unmarshal(raw, &fields) == nil:
		return approvalOfFields(raw, fields)
	}
	return builtin.Approval{Approved: true, Input: raw}, nil
}

func approvalOfFields(raw json.RawMessage, fields map[string]json.RawMessage) (builtin.Approval, error) {
	decision, decides := fields["approved"]
	for key := range fields {
		close := typo.Distance(strings.ToLower(key), "approved", 2) <= 2
		if slices.Contains(approvalKeys, key) || !decides && !close {
			continue
		}
		meant := ""
		if close {
			meant = `; did you mean "approved"?`
		}
		return builtin.Approval{}, badInput(refuseHint, "--input: unknown key %q of an answer%s", key, meant)
	}
	if !decides {
		return builtin.Approval{Approved: true, Input: raw}, nil
	}
	if d := string(bytes.TrimSpace(decision)); d != "true" && d != "false" {
		return builtin.Approval{}, badInput(refuseHint, "--input: approved is %s, and must be true or false", text.OneLine(d, explain.MaxNote))
	}
	var a builtin.Approval
	if err := json.Unmarshal(raw, &a); err != nil {
		return builtin.Approval{}, badInput(refuseHint, "--input: by and reason are texts: %w", err)
	}
	return a, nil
}

// soundsLikeNo reports whether a text is probably meant as a refusal.
func soundsLikeNo(said string) bool {
	word := strings.ToLower(strings.Trim(said, " .!"))
	return slices.Contains([]string{"n", "no", "nope", "never", "false", "not approved", "reject", "rejected", "refuse", "refused", "deny", "denied", "decline", "declined", "cancel", "stop"}, word)
}

// expireApprovals ends the questions of tasks whose time limit has passed, by an unblock with
// builtin.Approval.Expired, and returns their number. A concurrent answer may come first.
func expireApprovals(ctx context.Context, c *weaver.Client, tasks []weaver.TaskInfo, now time.Time) (expired int, err error) {
	for i := range tasks {
		t := &tasks[i]
		open := openFor(t)
		if open == 0 || explain.Question(t.Type, t.Error) == "" || t.State != task.Blocked || now.Sub(t.StartedAt) < open {
			continue
		}
		err := c.Unblock(ctx, t.ID, builtin.Approval{Expired: true}, weaver.ForAsk(t.Error.Ask), weaver.SeenEpoch(t.Epoch),
			weaver.By("weaver"), weaver.Reason("no answer within "+text.Setting(open)))
		switch {
		case err == nil:
			expired++
		case !errors.Is(err, weaver.ErrState) && !errors.Is(err, store.ErrChanged) && !errors.Is(err, weaver.ErrNotFound):
			return expired, err
		}
	}
	return expired, nil
}

// expireAllApprovals is expireApprovals for all tasks of a namespace that asked before an instant.
func expireAllApprovals(ctx context.Context, c *weaver.Client, before time.Time) (expired int, err error) {
	filter := weaver.Filter{States: []weaver.State{weaver.StateBlocked}, Types: []string{builtin.Approve.Name()}, Limit: 1000}
	for {
		tasks, next, err := c.List(ctx, filter)
		if err != nil {
			return expired, err
		}
		tasks = slices.DeleteFunc(tasks, func(t weaver.TaskInfo) bool { return !t.StartedAt.Before(before) })
		n, err := expireApprovals(ctx, c, tasks, time.Now())
		if expired += n; err != nil || next == "" {
			return expired, err
		}
		filter.After = next
	}
}

// expireEvery is the interval at which a worker looks for expired questions.
const expireEvery = 5 * time.Second

// expireWhile expires questions until ctx ends. It ignores errors of the store, which the engine meets and logs too.
func expireWhile(ctx context.Context, c *weaver.Client) error {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		_, _ = expireAllApprovals(ctx, c, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// untilIdle runs an engine until it is idle, including tasks whose questions expired.
func untilIdle(ctx context.Context, eng *weaver.Engine) error {
	began := time.Now()
	for {
		if err := eng.RunUntilIdle(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		expired, err := expireAllApprovals(ctx, eng.Client, began)
		if err != nil || expired == 0 {
			return err
		}
	}
}

// questions returns the tasks of a job that wait for an approval.
func questions(st *jobTasks) (asking []*weaver.TaskInfo) {
	for i := range st.Tasks {
		if t := &st.Tasks[i]; t.State == task.Blocked && explain.Question(t.Type, t.Error) != "" {
			asking = append(asking, t)
		}
	}
	return asking
}
