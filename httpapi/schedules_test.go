package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
)

// The verbs of schedules are those of weaver.Client.
func TestClientsSchedule(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		hourly := weaver.NewSchedule("a b/hourly", charge.With(chargeIn{Order: "1", Amount: 5}, weaver.Queue("billing")), weaver.Every(time.Hour), weaver.Overlap(weaver.OverlapAllow), weaver.CatchUp(time.Minute), weaver.Jitter(time.Second))
		info, err := s.c.PutSchedule(ctx, hourly, weaver.SeenVersion(0), weaver.Reason("as asked"))
		s.no(err)
		if info.Version != 1 || info.Every != "1h" || info.Overlap != weaver.OverlapAllow || info.CatchUp != "1m" || info.Jitter != "1s" || info.Type != charge.Name() || info.Queue != "billing" {
			s.Errorf("the schedule is %+v", info)
		}
		name := info.Name
		_, err = s.c.PutSchedule(ctx, hourly, weaver.SeenVersion(0))
		s.is(err, store.ErrChanged)
		_, err = s.c.PutSchedule(ctx, hourly, weaver.SeenVersion(7))
		s.is(err, store.ErrChanged, "version 1")

		j := weaver.NewJob("report")
		a := j.Add("a", charge.With(chargeIn{Order: "1", Amount: 5}))
		j.Add("b", charge.With(chargeIn{Order: "2", Amount: 5}), weaver.Needs(a))
		nightly, err := s.c.PutSchedule(ctx, weaver.NewSchedule("nightly", j, weaver.Cron("0 3 * * *", "Europe/Berlin"), weaver.Between(time.Now(), time.Now().AddDate(1, 0, 0))))
		s.no(err)
		if nightly.JobName != "report" || nightly.Tasks != 2 || nightly.When != "0 3 * * * in Europe/Berlin" || nightly.NotAfter.IsZero() {
			s.Errorf("the schedule of a job is %+v", nightly)
		}
		list, err := s.c.Schedules(ctx, "", 1)
		s.no(err)
		rest, err := s.c.Schedules(ctx, name, 0)
		s.no(err)
		if len(list) != 1 || list[0].Name != name || len(rest) != 1 || rest[0].Name != "nightly" {
			s.Errorf("the pages are %+v and %+v", list, rest)
		}

		_, err = s.c.PauseSchedule(ctx, name, weaver.Reason("migration"))
		s.no(err)
		_, err = s.c.PauseSchedule(ctx, name)
		s.is(err, weaver.ErrState)
		if info, err = s.c.Schedule(ctx, name); err != nil || info.Paused == nil || info.Paused.Reason != "migration" || !info.Next.IsZero() {
			s.Errorf("the paused schedule is %+v, %v", info, err)
		}
		_, err = s.c.ResumeSchedule(ctx, name)
		s.no(err)
		next, err := s.c.NextFires(ctx, name, 2)
		if err != nil || len(next) != 2 || next[1].Sub(next[0]) != time.Hour {
			s.Errorf("the next times are %v, %v", next, err)
		}
		if info, err = s.c.TriggerSchedule(ctx, name); err != nil || info.Last == nil || info.Last.Task.IsZero() {
			s.Errorf("after the trigger the schedule is %+v, %v", info, err)
		}
		from := next[0].Add(-10 * time.Hour)
		for _, want := range []weaver.Backfilled{{Times: 3}, {Times: 3, Fired: 3}, {Times: 3}} {
			var opts []weaver.OperateOption
			if want.Fired == 0 && next != nil {
				opts, next = append(opts, weaver.DryRun()), nil
			}
			if got, err := s.c.BackfillSchedule(ctx, name, from, from.Add(3*time.Hour), opts...); err != nil || got != want {
				s.Errorf("backfill: %+v, %v; want %+v", got, err, want)
			}
		}
		fires, err := s.c.ScheduleFires(ctx, name, time.Time{}, 2)
		s.no(err)
		older, err := s.c.ScheduleFires(ctx, name, fires[len(fires)-1].At, 0)
		if err != nil || len(fires) != 2 || len(older) != 2 || fires[0].Reason != "triggered" || older[1].At.Compare(from) != 0 {
			s.Errorf("the fires are %+v and %+v, %v", fires, older, err)
		}
		_, err = s.c.BackfillSchedule(ctx, name, from.AddDate(-10, 0, 0), from)
		s.is(err, weaver.ErrInvalidOption, "876", "10000")

		s.no(s.c.DeleteSchedule(ctx, name, weaver.Reason("done")))
		_, err = s.c.Schedule(ctx, name)
		s.is(err, weaver.ErrNotFound)
		_, err = s.c.ResumeSchedule(ctx, name, weaver.SeenVersion(1))
		s.is(err, weaver.ErrInvalidOption, "SeenVersion")
		_, err = s.c.PutSchedule(ctx, weaver.NewSchedule("s", charge.With(chargeIn{}), weaver.Cron("61 * * * *", "Europe/Berln")))
		s.is(err, weaver.ErrInvalidSchedule, "61", "Europe/Berln")
		entries, _, err := s.c.Audit(ctx, store.AuditFilter{Target: "schedule/" + name, Limit: 1})
		if err != nil || len(entries) != 1 || entries[0].Verb != "delete_schedule" || entries[0].Reason != "done" {
			s.Errorf("the audit has %+v, %v", entries, err)
		}
	})
}

const aTask = `"task":{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":1}}`

func TestScheduleRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	const at = "/v1/schedules/nightly"
	put := func(body string, headers ...string) *answer { return s.do(http.MethodPut, at, body, headers...) }
	for body, want := range map[string]string{
		`{` + aTask + `}`: "/cron",
		`{"cron":"@daily","every":"1h",` + aTask + `}`:                       "/cron",
		`{"cron":"@daily"}`:                                                  "/task",
		`{"every":"1h","timezone":"Europe/Berlin",` + aTask + `}`:            "/timezone",
		`{"every":"1h","job":{"name":"j","idempotency_key":"k","tasks":[]}}`: "/job/idempotency_key",
		`{"every":"1h","job":{"name":"j","tasks":[{"node":"a","task_type":"acme.billing.charge.v1","input":{"order":true}}]}}`: "/job/tasks/0/input/order",
		`{"every":"1h","task":{"task_type":"acme.none.v1","input":null}}`:                                                      "/task/task_type",
	} {
		a := put(body)
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), `"#`+want+`"`) {
			t.Errorf("%s: %d %s, want %s", body, a.status, a.body, want)
		}
	}
	for body, want := range map[string]string{
		`{"cron":"61 * * * *",` + aTask + `}`:                                                                 "61",
		`{"cron":"@daily","timezone":"Europe/Berln",` + aTask + `}`:                                           "Europe/Berln",
		`{"cron":"0 0 30 2 *",` + aTask + `}`:                                                                 "never",
		`{"every":"1ms",` + aTask + `}`:                                                                       "1s",
		`{"every":"1h","overlap":"maybe",` + aTask + `}`:                                                      "maybe",
		`{"every":"1h",` + strings.Replace(aTask, `{`, `{"idempotency_key":"k",`, 1) + `}`:                    "IdempotencyKey",
		`{"every":"1h","not_before":"2026-02-01T00:00:00Z","not_after":"2026-01-01T00:00:00Z",` + aTask + `}`: "before",
	} {
		if p := put(body).problem(http.StatusUnprocessableEntity, "invalid-schedule"); !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %s, want %q", body, p.Detail, want)
		}
	}
	const hourly = `{"every":"1h","reason":"as asked",` + aTask + `}`
	put(hourly, "If-Match", `"1"`).problem(http.StatusPreconditionFailed, "precondition-failed")
	etag := put(hourly, "If-None-Match", "*").want(http.StatusOK).header.Get("ETag")
	put(hourly, "If-None-Match", "*").problem(http.StatusPreconditionFailed, "precondition-failed")
	put(`{"every":"2h",`+aTask+`}`, "If-Match", etag).want(http.StatusOK)
	put(hourly, "If-Match", etag).problem(http.StatusPreconditionFailed, "precondition-failed")
	put(hourly, "If-Match", "odd").problem(http.StatusPreconditionFailed, "precondition-failed")
	put(hourly, "If-Match", etag, "If-None-Match", "*").problem(http.StatusBadRequest, "bad-query")
	put(hourly, "If-None-Match", etag).problem(http.StatusBadRequest, "bad-query")
	s.post(at+"/trigger", nil, "Idempotency-Key", "k").problem(http.StatusBadRequest, "bad-query")
	s.post(at+"/trigger", reasonGiven).want(http.StatusCreated)

	var got httpapi.Schedule
	if a := s.get(at + "?upcoming=3&limit=1").want(http.StatusOK).into(&got); a.header.Get("ETag") != `"2"` || got.Version != 2 || len(got.Upcoming) != 3 || len(got.Fires) != 1 || got.Fires[0].By != "ann" {
		t.Errorf("the schedule is %+v, with the ETag %s", got, a.header.Get("ETag"))
	}
	var page httpapi.Page[weaver.ScheduleFire]
	s.get(at + "/fires?limit=1").want(http.StatusOK).into(&page)
	next := page.Next
	page = httpapi.Page[weaver.ScheduleFire]{}
	s.get(at + "/fires?after=" + next).want(http.StatusOK).into(&page)
	if next == "" || len(page.Items) != 0 || page.Next != "" {
		t.Errorf("after the first fire come %+v", page)
	}
	var list httpapi.Page[weaver.ScheduleInfo]
	if s.get("/v1/schedules?limit=1").want(http.StatusOK).into(&list); list.Next != "nightly" {
		t.Errorf("a full page is %+v", list)
	}
	for _, bad := range []string{at + "/fires?after=yesterday", at + "?upcoming=1001", "/v1/schedules?limit=0"} {
		s.get(bad).problem(http.StatusBadRequest, "bad-query")
	}
	s.get("/v1/schedules/none/fires").problem(http.StatusNotFound, "not-found")
	s.do(http.MethodDelete, at+"?reason=done", nil).want(http.StatusNoContent)
	s.do(http.MethodDelete, at, nil).problem(http.StatusNotFound, "not-found")
}
