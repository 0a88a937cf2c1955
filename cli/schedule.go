package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// scheduleCmd groups the verbs of schedules.
type scheduleCmd struct {
	Ls       scheduleLsCmd       `cmd:"" help:"List schedules with their next times."`
	Show     scheduleShowCmd     `cmd:"" help:"Show a schedule, its next times and what became of the last ones."`
	Add      scheduleAddCmd      `cmd:"" help:"Create or change a schedule of a task."`
	Pause    schedulePauseCmd    `cmd:"" help:"Stop a schedule until resume."`
	Resume   scheduleResumeCmd   `cmd:"" help:"End a pause; times of the pause do not fire."`
	Trigger  scheduleTriggerCmd  `cmd:"" help:"Enqueue a run now."`
	Backfill scheduleBackfillCmd `cmd:"" help:"Enqueue a run for each time of a span that has not fired."`
	Rm       scheduleRmCmd       `cmd:"" help:"Delete a schedule; its runs stay."`
}

// Help is shown by schedule --help.
func (scheduleCmd) Help() string {
	return "A schedule enqueues a task or a job at its times, once for each, by any worker of the store; docs/schedules.md has the whole. " +
		"Go programs declare schedules in Config.Schedules."
}

type scheduleLsCmd struct {
	After string `placeholder:"NAME" help:"Only schedules with names after this."`
	Limit int    `default:"100" help:"Maximum number of schedules, up to 1000."`
}

// Run implements the verb.
func (c *scheduleLsCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		list, err := client.Schedules(ctx, c.After, c.Limit)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"schedules": orEmpty(list)})
		}
		if len(list) == 0 {
			s.printf("No schedule in namespace %q of %s.\n", client.Namespace(), s.store())
			return nil
		}
		t := newTable("NAME", "WHEN", "RUNS", "NEXT", "LAST", "RESULT", "STATE")
		t.gives = []give{{"WHEN", 12}, {"RUNS", 16}, {"NAME", 16}}
		for i := range list {
			x := &list[i]
			state := plain("active")
			switch {
			case x.Paused != nil:
				state = painted("paused", text.Yellow)
			case x.Next.IsZero():
				state = plain("no further time")
			}
			var last cell
			result := ""
			if x.Last != nil {
				last, result = s.when(x.Last.At), cmp.Or(x.Last.State, "gone")
			}
			t.add(plain(text.OneLine(x.Name, explain.MaxNote)), plain(x.When), plain(runsOf(x)), s.when(x.Next), last, plain(result), state)
		}
		s.list(t)
		return nil
	})
}

// whySchedule explains a schedule, if there is one of that name.
func (s *session) whySchedule(ctx context.Context, client *weaver.Client, name string) (told bool, err error) {
	name = strings.TrimPrefix(name, "schedule/")
	info, err := client.Schedule(ctx, name)
	if err != nil {
		return false, nil // what was asked for is something else
	}
	got := shownSchedule{ScheduleInfo: info}
	if got.Upcoming, err = client.NextFires(ctx, name, 1); err == nil {
		got.Fires, err = client.ScheduleFires(ctx, name, time.Time{}, 10)
	}
	if err != nil {
		return true, err
	}
	if s.json() {
		got.Upcoming, got.Fires = orEmpty(got.Upcoming), orEmpty(got.Fires)
		return true, s.writeJSON(got)
	}
	s.printf("Schedule %s: %s\n", text.OneLine(name, explain.MaxNote), s.standing(&got))
	for i := range got.Fires {
		f := &got.Fires[i]
		at := f.At.Format(time.RFC3339)
		switch {
		case f.Kind == store.FireFired && f.By != "":
			s.printf("%s fired out of turn (%s, by %s)\n", at, f.Reason, text.OneLine(f.By, explain.MaxNote))
		case f.Kind == store.FireFired:
			s.printf("%s fired\n", at)
		case f.Kind == store.FireQueued:
			s.printf("%s waits for the end of the last run\n", at)
		case f.Count > 1:
			s.printf("%s until %s did not fire (%d times): %s\n", at, f.Until.Format(time.RFC3339), f.Count, f.Reason)
		default:
			s.printf("%s did not fire: %s\n", at, f.Reason)
		}
	}
	return true, nil
}

// standing says in a sentence what a schedule does next, or what keeps it from firing.
func (s *session) standing(x *shownSchedule) string {
	switch {
	case x.Paused != nil && len(x.Upcoming) > 0:
		return fmt.Sprintf("it does not fire at %s, because it is paused since %s%s. `%s` ends the pause.", x.Upcoming[0].Format(time.RFC3339), x.Paused.At.Format(time.RFC3339), pauseNote(x.Paused), s.command("schedule", "resume", x.Name))
	case x.Next.IsZero() && x.Paused == nil:
		return "it has no further time (" + x.When + ")."
	case x.Last != nil && x.Overlap != weaver.OverlapAllow && !ended(x.Last.State):
		return fmt.Sprintf("it fires next at %s; its last run, of %s, is %s, and the overlap is %s: `%s` explains the run.", x.Next.Format(time.RFC3339), x.Last.At.Format(time.RFC3339), x.Last.State, x.Overlap, s.command("why", runID(x.Last)))
	case x.Paused != nil:
		return "it is paused" + pauseNote(x.Paused) + "."
	}
	return fmt.Sprintf("it fires next at %s (%s).", x.Next.Format(time.RFC3339), x.When)
}

// ended reports whether the state of a task or job is final. A run that is gone has ended.
func ended(state string) bool {
	switch state {
	case "", string(task.Succeeded), string(task.Failed), string(task.Cancelled):
		return true
	}
	return false
}

func runID(r *weaver.ScheduleRun) string {
	if !r.Job.IsZero() {
		return r.Job.String()
	}
	return r.Task.String()
}

// runsOf names what a schedule enqueues.
func runsOf(x *weaver.ScheduleInfo) string {
	if x.JobName != "" {
		return "job " + text.OneLine(x.JobName, explain.MaxNote)
	}
	return x.Type
}

type scheduleShowCmd struct {
	Name  string `arg:"" help:"Schedule."`
	Next  int    `default:"5" help:"Number of next times, up to 1000."`
	Limit int    `default:"20" help:"Number of past times, up to 1000."`
}

// shownSchedule is the JSON output of schedule show.
type shownSchedule struct {
	weaver.ScheduleInfo
	Upcoming []time.Time           `json:"upcoming"`
	Fires    []weaver.ScheduleFire `json:"fires"`
}

// Run implements the verb.
func (c *scheduleShowCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		info, err := client.Schedule(ctx, c.Name)
		if err != nil {
			return err
		}
		got := shownSchedule{ScheduleInfo: info}
		if got.Upcoming, err = client.NextFires(ctx, c.Name, c.Next); err != nil {
			return err
		}
		if got.Fires, err = client.ScheduleFires(ctx, c.Name, time.Time{}, c.Limit); err != nil {
			return err
		}
		if s.json() {
			got.Upcoming, got.Fires = orEmpty(got.Upcoming), orEmpty(got.Fires)
			return s.writeJSON(got)
		}
		s.printSchedule(&got)
		return nil
	})
}

func (s *session) printSchedule(x *shownSchedule) {
	s.field("schedule", text.OneLine(x.Name, explain.MaxNote))
	s.field("version", fmt.Sprint(x.Version))
	s.field("when", x.When)
	s.field("runs", runsOf(&x.ScheduleInfo))
	s.field("overlap", string(x.Overlap))
	s.field("catch-up", x.CatchUp)
	if x.Jitter != "" {
		s.field("jitter", x.Jitter)
	}
	if x.Program != "" {
		s.field("declared by", fmt.Sprintf("%s, version %d", text.OneLine(x.Program, explain.MaxNote), x.CodeVersion))
	}
	if p := x.Paused; p != nil {
		s.field("paused", s.when(p.At).text+pauseNote(p))
	}
	if len(x.Queued) > 0 {
		s.field("waiting", text.Plural(len(x.Queued), "time")+" until the last run has ended")
	}
	if len(x.Upcoming) > 0 {
		t := newTable("TIME")
		for _, at := range x.Upcoming {
			t.add(plain(at.Format(time.RFC3339)))
		}
		title := "Next times"
		if x.Paused != nil {
			title += " (paused: they do not fire)"
		}
		s.section(title, t)
	}
	if len(x.Fires) == 0 {
		return
	}
	t := newTable("TIME", "RESULT", "RUN", "BY", "REASON")
	t.gives = []give{{"REASON", 20}}
	for i := range x.Fires {
		f := &x.Fires[i]
		kind, run := string(f.Kind), ""
		if f.Count > 1 {
			kind = fmt.Sprintf("%s, %d times until %s", kind, f.Count, f.Until.Format(time.RFC3339))
		}
		switch {
		case !f.Task.IsZero():
			run = f.Task.String()
		case !f.Job.IsZero():
			run = f.Job.String()
		}
		t.add(plain(f.At.Format(time.RFC3339)), plain(kind), plain(run), plain(text.OneLine(f.By, explain.MaxNote)), plain(text.OneLine(f.Reason, explain.MaxNote)))
	}
	s.section("Past times", t)
}

func pauseNote(p *weaver.SchedulePause) (note string) {
	if p.By != "" {
		note += " by " + text.OneLine(p.By, explain.MaxNote)
	}
	if p.Reason != "" {
		note += ": " + text.OneLine(p.Reason, explain.MaxNote)
	}
	return note
}

type scheduleAddCmd struct {
	Name     string         `arg:"" help:"Schedule."`
	What     string         `arg:"" name:"type" help:"Task type."`
	Input    string         `arg:"" optional:"" name:"json" help:"Input of the task, - for the standard input; default null."`
	Cron     string         `placeholder:"EXPRESSION" help:"Five fields, for example \"0 3 * * *\", or a name such as @daily."`
	Timezone string         `placeholder:"ZONE" help:"Time zone of --cron, for example Europe/Berlin; default UTC."`
	Every    time.Duration  `placeholder:"DURATION" help:"Time between two fires, instead of --cron."`
	Overlap  string         `placeholder:"POLICY" help:"While the last run has not ended: skip (default), queue, cancel_running or allow."`
	CatchUp  *time.Duration `placeholder:"DURATION" help:"How old the latest missed time may be to fire after an outage; default 1h."`
	Jitter   time.Duration  `placeholder:"DURATION" help:"Maximum delay of each fire."`

	ForceUnknownType bool `help:"Also store a schedule of an unknown type, with unchecked input."`
	taskFlags
	auditFlags
}

// Run implements the verb.
func (c *scheduleAddCmd) Run(ctx context.Context, s *session) error {
	when := weaver.Cron(c.Cron, c.Timezone)
	switch {
	case (c.Cron == "") == (c.Every == 0):
		return badInput(`For example --cron "0 3 * * *" --timezone Europe/Berlin, or --every 15m.`, "schedule add %s: give either --cron or --every", c.Name)
	case c.Every != 0 && c.Timezone != "":
		return badInput("", "schedule add %s: --every is elapsed time, and has no --timezone", c.Name)
	case c.Every != 0:
		when = weaver.Every(c.Every)
	}
	task := submitCmd{What: c.What, Input: c.Input, ForceUnknownType: c.ForceUnknownType, taskFlags: c.taskFlags}
	input, err := task.readInput(s.stdin)
	if err != nil {
		return err
	}
	options, err := task.options()
	if err != nil {
		return err
	}
	draft, err := task.draft(ctx, s, input, options)
	if err != nil {
		return err
	}
	opts := []weaver.ScheduleOption{weaver.Jitter(c.Jitter)}
	if c.Overlap != "" {
		opts = append(opts, weaver.Overlap(weaver.OverlapPolicy(c.Overlap)))
	}
	if c.CatchUp != nil {
		opts = append(opts, weaver.CatchUp(*c.CatchUp))
	}
	sched := weaver.NewSchedule(c.Name, draft, when, opts...)
	if err := sched.Err(); err != nil {
		return badInput("", "schedule add: %w", err)
	}
	return s.withProducer(ctx, func(client *weaver.Client) error {
		info, err := client.PutSchedule(ctx, sched, c.options()...)
		return s.saySchedule(&info, err, "stored")
	})
}

// options are those of the audit; the options of the task are in the draft.
func (c *scheduleAddCmd) options() []weaver.OperateOption { return c.auditFlags.options() }

// saySchedule prints a schedule that a verb changed.
func (s *session) saySchedule(info *weaver.ScheduleInfo, err error, done string) error {
	if err != nil {
		return err
	}
	if s.json() {
		return s.writeJSON(info)
	}
	next := "It has no further time."
	switch {
	case info.Paused != nil:
		next = "It is paused."
	case !info.Next.IsZero():
		next = "It fires next at " + info.Next.Format(time.RFC3339) + "."
	}
	s.printf("Schedule %s (%s) %s. %s\n", text.OneLine(info.Name, explain.MaxNote), info.When, done, next)
	return nil
}

type schedulePauseCmd struct {
	Name string `arg:"" help:"Schedule."`
	auditFlags
}

// Run implements the verb.
func (c *schedulePauseCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		info, err := client.PauseSchedule(ctx, c.Name, c.options()...)
		return s.saySchedule(&info, err, "paused")
	})
}

type scheduleResumeCmd struct {
	Name string `arg:"" help:"Schedule."`
	auditFlags
}

// Run implements the verb.
func (c *scheduleResumeCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		info, err := client.ResumeSchedule(ctx, c.Name, c.options()...)
		return s.saySchedule(&info, err, "resumed")
	})
}

type scheduleTriggerCmd struct {
	Name string `arg:"" help:"Schedule."`
	auditFlags
}

// Help is shown by schedule trigger --help.
func (scheduleTriggerCmd) Help() string {
	return "The run starts whatever the pause and the overlap. The next time of the schedule stays."
}

// Run implements the verb.
func (c *scheduleTriggerCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		info, err := client.TriggerSchedule(ctx, c.Name, c.options()...)
		if err != nil || s.json() || info.Last == nil {
			return s.saySchedule(&info, err, "triggered")
		}
		run := runID(info.Last)
		s.printf("Schedule %s: run %s is enqueued; `%s` explains it.\n", text.OneLine(info.Name, explain.MaxNote), run, s.command("why", run))
		return nil
	})
}

type scheduleBackfillCmd struct {
	Name   string    `arg:"" help:"Schedule."`
	From   time.Time `required:"" format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"Begin of the span, for example 2026-11-01T00:00:00Z."`
	To     time.Time `required:"" format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"End of the span, which is not in it."`
	DryRun bool      `help:"Only count the times."`
	auditFlags
}

// Help is shown by schedule backfill --help.
func (scheduleBackfillCmd) Help() string {
	return "Times that have fired are left out, so repeating it is safe. The runs are enqueued at once: give the task a concurrency key to limit " +
		"how many run together. A span may have 10,000 times."
}

// Run implements the verb.
func (c *scheduleBackfillCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		opts := c.options()
		if c.DryRun {
			opts = append(opts, weaver.DryRun())
		}
		got, err := client.BackfillSchedule(ctx, c.Name, c.From, c.To, opts...)
		switch {
		case err != nil:
			return err
		case s.json():
			return s.writeJSON(got)
		case c.DryRun:
			s.printf("Schedule %s has %s in the span; those that have fired are left out.\n", c.Name, text.Plural(got.Times, "time"))
		default:
			s.printf("Schedule %s: %s enqueued; the span has %s.\n", c.Name, text.Plural(got.Fired, "run"), text.Plural(got.Times, "time"))
		}
		return nil
	})
}

type scheduleRmCmd struct {
	Name string `arg:"" help:"Schedule."`
	auditFlags
}

// Run implements the verb.
func (c *scheduleRmCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		if err := client.DeleteSchedule(ctx, c.Name, c.options()...); err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"name": c.Name, "deleted": true})
		}
		s.printf("Schedule %s deleted; its runs stay.\n", text.OneLine(c.Name, explain.MaxNote))
		return nil
	})
}
