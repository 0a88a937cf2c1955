package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/calendar"
	"github.com/goweaver/weaver/internal/text"
)

// Schedule says when the pipeline runs: Cron and Timezone, or Every.
type Schedule struct {
	Cron, Timezone string
	Every          time.Duration
	Overlap        weaver.OverlapPolicy // "": not set
	CatchUp        time.Duration        // 0: not set
	Jitter         time.Duration
}

// String returns the rule in words: "0 3 * * * in Europe/Berlin".
func (s *Schedule) String() string { return s.spec().String() }

func (s *Schedule) spec() calendar.Spec {
	return calendar.Spec{Cron: s.Cron, Timezone: s.Timezone, Every: calendar.Duration(s.Every)}
}

// Of returns the schedule of a job.
func (s *Schedule) Of(name string, job *weaver.Job) weaver.Schedule {
	when := weaver.Cron(s.Cron, s.Timezone)
	if s.Every != 0 {
		when = weaver.Every(s.Every)
	}
	opts := []weaver.ScheduleOption{weaver.Jitter(s.Jitter)}
	if s.Overlap != "" {
		opts = append(opts, weaver.Overlap(s.Overlap))
	}
	if s.CatchUp != 0 {
		opts = append(opts, weaver.CatchUp(s.CatchUp))
	}
	return weaver.NewSchedule(name, job, when, opts...)
}

const scheduleExample = `{cron: "0 3 * * *", timezone: Europe/Berlin}`

var overlaps = []weaver.OverlapPolicy{weaver.OverlapSkip, weaver.OverlapQueue, weaver.OverlapCancelRunning, weaver.OverlapAllow}

func (d *decoder) schedule(f field) *Schedule {
	if !d.mapping(f, scheduleExample) {
		return nil
	}
	s := new(Schedule)
	d.keys(f.value, "the schedule", scheduleLevel, func(f field) {
		switch f.name {
		case "cron":
			s.Cron = d.filledText(f, `"0 3 * * *"`)
			d.checkSpec(f, "cron ", s.Cron, calendar.Spec{Cron: s.Cron})
		case "timezone":
			s.Timezone = d.filledText(f, "Europe/Berlin")
			d.checkSpec(f, "timezone ", s.Timezone, calendar.Spec{Cron: "@daily", Timezone: s.Timezone})
		case "every":
			s.Every = d.duration(f, "15m")
			if s.Every%time.Second != 0 {
				d.r.add(f.spot(), fmt.Sprintf("%s is %s, which is not a whole number of seconds", f.label(), text.Setting(s.Every)), f.example("15m"))
			}
		case "overlap":
			s.Overlap = weaver.OverlapPolicy(d.filledText(f, "queue"))
			if s.Overlap != "" && !slices.Contains(overlaps, s.Overlap) {
				d.r.add(f.spot(), fmt.Sprintf("%s is %s", f.label(), quote(string(s.Overlap))), "write skip, queue, cancel_running or allow")
			}
		case "catch_up":
			s.CatchUp = d.duration(f, "1h")
			if s.CatchUp > 0 && s.CatchUp < time.Second {
				d.r.add(f.spot(), fmt.Sprintf("%s is %s, shorter than a second", f.label(), text.Setting(s.CatchUp)), f.example("1h"))
			}
		case "jitter":
			s.Jitter = d.duration(f, "30s")
		}
	})
	_, cron := f.value.get("cron")
	every, elapsed := f.value.get("every")
	zone, zoned := f.value.get("timezone")
	switch {
	case cron && elapsed:
		d.r.add(every.at, `the schedule has "cron" and "every"`, "keep one of them")
	case !cron && !elapsed && len(f.value.duplicates) == 0:
		d.r.add(f.at, "the schedule does not say when", "write for example schedule: "+scheduleExample)
	case elapsed && zoned:
		d.r.add(zone.at, `"timezone" belongs to "cron": "every" is elapsed time, which is the same in all zones`, "remove it")
	}
	return s
}

// checkSpec reports the mistake of a value of the schedule, without prefix.
func (d *decoder) checkSpec(f field, prefix, value string, spec calendar.Spec) {
	if value == "" {
		return
	}
	if _, err := calendar.New(spec); err != nil {
		problem := strings.TrimPrefix(err.Error(), prefix+quoted(value)+": ")
		d.r.add(f.spot(), fmt.Sprintf("%s is %s: %s", f.label(), quote(value), problem), f.example(map[string]string{"cron": `"0 3 * * *"`, "timezone": "Europe/Berlin"}[f.name]))
	}
}

// quoted is a value as the messages of package calendar quote it.
func quoted(value string) string { return fmt.Sprintf("%q", strings.Join(strings.Fields(value), " ")) }
