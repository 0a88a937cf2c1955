package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver"
)

func (t tools) addLimitReads(s *mcp.Server) {
	add(t, s, "list_limits", "Lists limits by name with their use: starts per period, running and waiting tasks of a queue, a type or a label's value.", &mcp.ToolAnnotations{ReadOnlyHint: true}, t.listLimits)
}

func (t tools) addLimitWrites(s *mcp.Server) {
	add(t, s, "set_limit", "Sets a limit, at once and in all processes. It becomes what is given: what is left out is not limited.", nil, t.setLimit)
	add(t, s, "delete_limit", "Deletes a limit.", nil, t.deleteLimit)
}

type listLimitsInput struct {
	Limit int    `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; default 20"`
	After string `json:"after,omitempty" jsonschema:"go on where a page before ended: its next"`
}

func (t tools) listLimits(ctx context.Context, in listLimitsInput) (string, error) {
	switch {
	case in.Limit == 0:
		in.Limit = defaultRows
	case in.Limit < 0 || in.Limit > maxRows:
		return "", say("limit %d: want 1 to %d; next goes on behind them", in.Limit, maxRows)
	}
	list, err := t.Client.Limits(ctx, in.After, in.Limit)
	if err != nil {
		return "", err
	}
	p := page[weaver.LimitInfo]{Items: list}
	if len(list) == 0 {
		p.Items = []weaver.LimitInfo{}
	}
	if len(list) == in.Limit {
		p.Next = list[len(list)-1].Name
	}
	return text(p)
}

type setLimitInput struct {
	Name    string `json:"name" jsonschema:"queue:NAME, type:NAME, label:KEY=VALUE or rate:KEY"`
	Starts  int    `json:"starts,omitempty" jsonschema:"how many tasks start in each period, evenly spaced"`
	Per     string `json:"per,omitempty" jsonschema:"the period of starts, a duration such as 1s or 1m"`
	Burst   int    `json:"burst,omitempty" jsonschema:"how many of them may start at once after a pause; default 1"`
	Running int    `json:"running,omitempty" jsonschema:"how many tasks run at once"`
	Pending int    `json:"pending,omitempty" jsonschema:"of a queue: how many tasks wait to start; further enqueues are refused"`
	Weight  int    `json:"weight,omitempty" jsonschema:"of a label's value: how many of its tasks start in each turn; default 1"`
	Reason  string `json:"reason" jsonschema:"why; kept in the audit"`
}

func (t tools) setLimit(ctx context.Context, in setLimitInput) (string, error) {
	if in.Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	l := weaver.Limit{Starts: in.Starts, Burst: in.Burst, Running: in.Running, Pending: in.Pending, Weight: in.Weight}
	if in.Per != "" {
		per, err := time.ParseDuration(in.Per)
		if err != nil {
			return "", say("per is %q: want a duration such as 1s or 1m", short(in.Per, 64))
		}
		l.Per = per
	}
	if err := t.Client.SetLimit(ctx, in.Name, l, weaver.By(t.Actor), weaver.Reason(in.Reason)); err != nil {
		return "", err
	}
	got, err := t.Client.Limit(ctx, in.Name)
	if err != nil {
		return "", err
	}
	return text(got)
}

type deleteLimitInput struct {
	Name   string `json:"name" jsonschema:"the name of the limit"`
	Reason string `json:"reason" jsonschema:"why; kept in the audit"`
}

func (t tools) deleteLimit(ctx context.Context, in deleteLimitInput) (string, error) {
	if in.Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	if err := t.Client.DeleteLimit(ctx, in.Name, weaver.By(t.Actor), weaver.Reason(in.Reason)); err != nil {
		return "", err
	}
	return text(map[string]string{"deleted": in.Name})
}
