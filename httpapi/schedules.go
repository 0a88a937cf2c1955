package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/store"
)

// scheduleOperation is a verb of a schedule.
type scheduleOperation func(c *weaver.Client, ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error)

// scheduleRoutes are the routes of schedules.
func (a *API) scheduleRoutes() []route {
	const pattern = "/v1/schedules/{name}"
	info := ok[weaver.ScheduleInfo]("The schedule after the change.", "ETag")
	version := param{name: "If-Match", in: "header", typ: "string", summary: "The ETag of the schedule as it was read: if its definition has changed since, the request fails (412)."}
	absent := param{name: "If-None-Match", in: "header", typ: "string", summary: "*: if there is a schedule of this name, the request fails (412)."}
	verb := func(name, id, summary string, handle func(*call) error) route {
		return route{method: post, pattern: pattern + "/" + name, id: id, summary: summary, access: Read | Operate, body: typeOf[verbRequest](), answers: info, handle: handle}
	}
	trigger := verb("trigger", "triggerSchedule", "Enqueue a run now, whatever the pause and the overlap.", scheduleVerb((*weaver.Client).TriggerSchedule, http.StatusCreated))
	trigger.answers = []answer{{status: 201, typ: typeOf[weaver.ScheduleInfo](), headers: []string{"ETag"}, summary: "The run, which is last, is durable."}}
	return []route{
		{method: get, pattern: "/v1/schedules", id: "listSchedules", summary: "List schedules by name.", access: Read, params: []param{query("limit", "integer", "Maximum rows of the page: 1 to 1,000; default 100."), query("after", "string", "The `next` of the previous page, or any name: only schedules after it.")}, answers: ok[Page[weaver.ScheduleInfo]]("A page."), handle: (*call).listSchedules},
		{method: get, pattern: pattern, id: "getSchedule", summary: "Read a schedule, its next times, and what became of the last ones.", access: Read, params: []param{query("upcoming", "integer", "Number of next times: 1 to 1,000; default 5."), query("limit", "integer", "Maximum number of past times: 1 to 1,000; default 20.")}, answers: ok[Schedule]("The schedule.", "ETag"), handle: (*call).getSchedule},
		{method: get, pattern: pattern + "/fires", id: "listFires", summary: "List what became of the times of a schedule, newest first.", access: Read, params: []param{query("limit", "integer", "Maximum rows of the page: 1 to 1,000; default 100."), query("after", "string", "The `next` of the previous page, or any time: only earlier times.")}, answers: ok[Page[weaver.ScheduleFire]]("A page."), handle: (*call).listFires},
		{method: put, pattern: pattern, id: "putSchedule", summary: "Create a schedule, or change the one of this name. Times of a changed rule count from now; a pause stays.", access: Read | Operate | Submit, params: []param{version, absent}, body: typeOf[ScheduleDraft](), answers: info, handle: (*call).putSchedule},
		verb("pause", "pauseSchedule", "Stop a schedule until it is resumed.", scheduleVerb((*weaver.Client).PauseSchedule, http.StatusOK)),
		verb("resume", "resumeSchedule", "End the pause of a schedule; its times do not fire.", scheduleVerb((*weaver.Client).ResumeSchedule, http.StatusOK)),
		trigger,
		{method: post, pattern: pattern + "/backfill", id: "backfillSchedule", summary: "Enqueue a run for each time of a span that has not fired. A span may have 10,000 times. Repeating it continues.", access: Read | Operate, body: typeOf[backfillRequest](), answers: ok[weaver.Backfilled]("The result."), handle: (*call).backfillSchedule},
		{method: del, pattern: pattern, id: "deleteSchedule", summary: "Delete a schedule and the records of its times; its runs stay.", access: Read | Operate, params: []param{query("reason", "string", "The reason, for the audit log.")}, answers: []answer{{status: 204, summary: "It was deleted."}}, handle: (*call).deleteSchedule},
	}
}

func (c *call) listSchedules() error {
	return listByName(c, c.api.client.Schedules, func(s *weaver.ScheduleInfo) string { return s.Name })
}

// listByName writes a page of a list that is ordered by name.
func listByName[T any](c *call, read func(ctx context.Context, after string, limit int) ([]T, error), name func(*T) string) error {
	n, err := c.number("limit", 1, store.MaxLimit)
	if err != nil {
		return err
	}
	n = cmp.Or(n, 100)
	ctx, cancel := c.context()
	defer cancel()
	list, err := read(ctx, c.get("after"), n)
	if err != nil {
		return err
	}
	page := Page[T]{Items: listOf(list).Items}
	if len(list) == n {
		page.Next = name(&list[n-1])
	}
	return c.write(http.StatusOK, page)
}

func (c *call) getSchedule() error {
	upcoming, err := c.number("upcoming", 1, store.MaxLimit)
	if err != nil {
		return err
	}
	limit, err := c.number("limit", 1, store.MaxLimit)
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	var got Schedule
	name := c.path("name")
	if got.ScheduleInfo, err = c.api.client.Schedule(ctx, name); err != nil {
		return err
	}
	times, err := c.api.client.NextFires(ctx, name, cmp.Or(upcoming, 5))
	if err != nil {
		return err
	}
	fires, err := c.api.client.ScheduleFires(ctx, name, time.Time{}, cmp.Or(limit, 20))
	if err != nil {
		return err
	}
	got.Upcoming, got.Fires = listOf(times).Items, listOf(fires).Items
	c.w.Header().Set("ETag", wire.VersionTag(got.Version))
	return c.write(http.StatusOK, got)
}

func (c *call) listFires() error {
	n, err := c.number("limit", 1, store.MaxLimit)
	if err != nil {
		return err
	}
	n = cmp.Or(n, 100)
	var before time.Time
	if after := c.get("after"); after != "" {
		if before, err = time.Parse(time.RFC3339Nano, after); err != nil {
			return badParam("after", "%q: want the next of a page, or a time such as 2026-11-01T00:00:00Z", after)
		}
	}
	ctx, cancel := c.context()
	defer cancel()
	list, err := c.api.client.ScheduleFires(ctx, c.path("name"), before, n)
	if err != nil {
		return err
	}
	page := Page[weaver.ScheduleFire]{Items: listOf(list).Items}
	if len(list) == n {
		page.Next = list[n-1].At.UTC().Format(time.RFC3339Nano)
	}
	return c.write(http.StatusOK, page)
}

// putSchedule stores a schedule. Its work is checked as an enqueue is.
func (c *call) putSchedule() error {
	var body ScheduleDraft
	if err := c.decode(&body); err != nil {
		return err
	}
	opts, err := c.seenVersion(c.operator(body.Reason))
	if err != nil {
		return err
	}
	when := weaver.Cron(body.Cron, body.Timezone)
	switch {
	case (body.Cron == "") == (body.Every == 0):
		return bodyProblem(invalidBody, "/cron", "want one of cron and every")
	case (body.Task == nil) == (body.Job == nil):
		return bodyProblem(invalidBody, "/task", "want one of task and job")
	case body.Every != 0 && body.Timezone != "":
		return bodyProblem(invalidBody, "/timezone", "every is elapsed time, and has no timezone: leave it out")
	case body.Every != 0:
		when = weaver.Every(time.Duration(body.Every))
	}
	set := []weaver.ScheduleOption{weaver.Jitter(time.Duration(body.Jitter)), weaver.Between(body.NotBefore, body.NotAfter)}
	if body.Overlap != "" {
		set = append(set, weaver.Overlap(body.Overlap))
	}
	if body.CatchUp != 0 {
		set = append(set, weaver.CatchUp(time.Duration(body.CatchUp)))
	}
	ctx, cancel := c.context()
	defer cancel()
	var work weaver.Schedulable
	if body.Task != nil {
		d, err := c.draft(ctx, body.Task, "/task")
		if err != nil {
			return within(err, "/task")
		}
		work = d
	} else {
		if body.Job.IdempotencyKey != "" {
			return bodyProblem(invalidBody, "/job/idempotency_key", "each run of a schedule has its own: leave it out")
		}
		if work, err = c.job(ctx, body.Job, "/job"); err != nil {
			return err
		}
	}
	got, err := c.api.client.PutSchedule(ctx, weaver.NewSchedule(c.path("name"), work, when, set...), opts...)
	if err != nil {
		return err
	}
	return c.writeSchedule(http.StatusOK, &got)
}

// seenVersion converts If-Match and If-None-Match to an option.
func (c *call) seenVersion(opts []weaver.OperateOption) ([]weaver.OperateOption, error) {
	match, none := c.r.Header.Values("If-Match"), c.r.Header.Values("If-None-Match")
	switch {
	case len(match) > 1 || len(none) > 1 || len(match) > 0 && len(none) > 0:
		return nil, badParam("If-Match", "want one of If-Match and If-None-Match, once")
	case len(none) == 1 && none[0] != "*":
		return nil, badParam("If-None-Match", "%.80q: want *", none[0])
	case len(none) == 1:
		c.conditional = true
		return append(opts, weaver.SeenVersion(0)), nil
	case len(match) == 0:
		return opts, nil
	}
	c.conditional = true
	v, err := strconv.Atoi(strings.Trim(match[0], `"`))
	if err != nil || v < 1 {
		return nil, preconditionBad.of("If-Match is %.80q: want the ETag with which the schedule was read.", match[0])
	}
	return append(opts, weaver.SeenVersion(v)), nil
}

// scheduleVerb returns the handler of a verb. The response is the schedule after it.
func scheduleVerb(do scheduleOperation, status int) func(*call) error {
	return func(c *call) error {
		var body verbRequest
		if err := c.decodeOptional(&body); err != nil {
			return err
		}
		ctx, cancel := c.context()
		defer cancel()
		got, err := do(c.api.client, ctx, c.path("name"), c.operator(body.Reason)...)
		if err != nil {
			return err
		}
		return c.writeSchedule(status, &got)
	}
}

func (c *call) writeSchedule(status int, s *weaver.ScheduleInfo) error {
	c.w.Header().Set("ETag", wire.VersionTag(s.Version))
	return c.write(status, s)
}

func (c *call) backfillSchedule() error {
	var body backfillRequest
	if err := c.decode(&body); err != nil {
		return err
	}
	opts := c.operator(body.Reason)
	if body.DryRun {
		opts = append(opts, weaver.DryRun())
	}
	ctx, cancel := c.context()
	defer cancel()
	got, err := c.api.client.BackfillSchedule(ctx, c.path("name"), body.From, body.To, opts...)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, got)
}

func (c *call) deleteSchedule() error {
	ctx, cancel := c.context()
	defer cancel()
	if err := c.api.client.DeleteSchedule(ctx, c.path("name"), c.operator(c.get("reason"))...); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
