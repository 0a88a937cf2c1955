package mcpserver

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver"
)

func (t tools) addScheduleReads(s *mcp.Server) {
	hints := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add(t, s, "list_schedules", "Lists schedules by name, with their next times and last runs.", hints, t.listSchedules)
	add(t, s, "show_schedule", "Shows one schedule: its rule, its next times, and what became of the last ones: fired with which run, or skipped and why.", hints, t.showSchedule)
}

func (t tools) addScheduleWrites(s *mcp.Server) {
	safe := false
	add(t, s, "pause_schedule", "Stops a schedule until it is resumed; runs continue.", nil, t.pauseSchedule)
	add(t, s, "resume_schedule", "Ends the pause of a schedule. The times of the pause do not fire.", &mcp.ToolAnnotations{DestructiveHint: &safe}, t.resumeSchedule)
	add(t, s, "trigger_schedule", "Enqueues a run of a schedule now, whatever the pause and the overlap. Its next time stays.", &mcp.ToolAnnotations{DestructiveHint: &safe}, t.triggerSchedule)
	add(t, s, "backfill_schedule", "Enqueues a run for each time of a span that has not fired, at most 10,000; with dry_run it only counts the times. Calling it again fires nothing twice.", &mcp.ToolAnnotations{DestructiveHint: &safe}, t.backfillSchedule)
}

type listSchedulesInput struct {
	Limit int    `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; default 20"`
	After string `json:"after,omitempty" jsonschema:"go on where a page before ended: its next"`
}

func (t tools) listSchedules(ctx context.Context, in listSchedulesInput) (string, error) {
	switch {
	case in.Limit == 0:
		in.Limit = defaultRows
	case in.Limit < 0 || in.Limit > maxRows:
		return "", say("limit %d: want 1 to %d; next goes on behind them", in.Limit, maxRows)
	}
	list, err := t.Client.Schedules(ctx, in.After, in.Limit)
	if err != nil {
		return "", err
	}
	p := page[weaver.ScheduleInfo]{Items: list}
	if len(list) == 0 {
		p.Items = []weaver.ScheduleInfo{}
	}
	if len(list) == in.Limit {
		p.Next = list[len(list)-1].Name
	}
	return text(p)
}

// Times of a schedule that show_schedule shows.
const (
	nextTimes = 5
	pastTimes = 20
)

type scheduleInput struct {
	Name string `json:"name" jsonschema:"the name of the schedule"`
}

type scheduleView struct {
	weaver.ScheduleInfo
	Upcoming []time.Time           `json:"upcoming"`
	Fires    []weaver.ScheduleFire `json:"fires"`
}

func (t tools) showSchedule(ctx context.Context, in scheduleInput) (string, error) {
	var v scheduleView
	var err error
	if v.ScheduleInfo, err = t.Client.Schedule(ctx, in.Name); err != nil {
		return "", scheduleError(in.Name, err)
	}
	if v.Upcoming, err = t.Client.NextFires(ctx, in.Name, nextTimes); err != nil {
		return "", scheduleError(in.Name, err)
	}
	if v.Fires, err = t.Client.ScheduleFires(ctx, in.Name, time.Time{}, pastTimes); err != nil {
		return "", scheduleError(in.Name, err)
	}
	return text(v)
}

// scheduleError adds advice to an error of a schedule.
func scheduleError(name string, err error) error {
	switch {
	case errors.Is(err, weaver.ErrNotFound):
		return say("there is no schedule %q: list_schedules lists them", short(name, 64))
	case errors.Is(err, weaver.ErrState):
		return say("%w: show_schedule shows it", err)
	}
	return err
}

type operateScheduleInput struct {
	Name   string `json:"name" jsonschema:"the name of the schedule"`
	Reason string `json:"reason" jsonschema:"why; kept in the audit"`
}

// operateSchedule applies a verb and returns the schedule afterwards.
func (t tools) operateSchedule(ctx context.Context, in operateScheduleInput, do func(context.Context, string, ...weaver.OperateOption) (weaver.ScheduleInfo, error)) (string, error) {
	if in.Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	got, err := do(ctx, in.Name, weaver.By(t.Actor), weaver.Reason(in.Reason))
	if err != nil {
		return "", scheduleError(in.Name, err)
	}
	return text(got)
}

func (t tools) pauseSchedule(ctx context.Context, in operateScheduleInput) (string, error) {
	return t.operateSchedule(ctx, in, t.Client.PauseSchedule)
}

func (t tools) resumeSchedule(ctx context.Context, in operateScheduleInput) (string, error) {
	return t.operateSchedule(ctx, in, t.Client.ResumeSchedule)
}

func (t tools) triggerSchedule(ctx context.Context, in operateScheduleInput) (string, error) {
	return t.operateSchedule(ctx, in, t.Client.TriggerSchedule)
}

type backfillScheduleInput struct {
	operateScheduleInput
	From   time.Time `json:"from" jsonschema:"begin of the span, as 2026-11-01T00:00:00Z"`
	To     time.Time `json:"to" jsonschema:"end of the span, which is not in it"`
	DryRun bool      `json:"dry_run,omitempty" jsonschema:"only count the times"`
}

func (t tools) backfillSchedule(ctx context.Context, in backfillScheduleInput) (string, error) {
	if in.Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	opts := []weaver.OperateOption{weaver.By(t.Actor), weaver.Reason(in.Reason)}
	if in.DryRun {
		opts = append(opts, weaver.DryRun())
	}
	got, err := t.Client.BackfillSchedule(ctx, in.Name, in.From, in.To, opts...)
	if err != nil {
		return "", scheduleError(in.Name, err)
	}
	return text(got)
}
