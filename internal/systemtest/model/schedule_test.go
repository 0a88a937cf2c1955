package model_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goweaver/weaver/internal/calendar"
	"github.com/goweaver/weaver/internal/schedule"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// TestScheduleModel applies the same random verbs and looks of engines to a schedule of memstore and of SQLite. Their
// rows and records are equal after each, and keep the rules: each time of the schedule has one decision, none fires
// early, twice, in a pause, or later than the catch-up time, and the runs are those of the records.
func TestScheduleModel(t *testing.T) {
	checks := 100
	if testing.Short() {
		checks /= 4
	}
	unlessGiven(t, "rapid.checks", fmt.Sprint(checks))
	unlessGiven(t, "rapid.steps", "40")
	unlessGiven(t, "rapid.seed", "1")
	unlessGiven(t, "rapid.nofailfile", "true")
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, runSchedule) })
}

const scheduleName = "s"

// scheduled is a schedule in two stores.
type scheduled struct {
	*rapid.T
	stores []store.Store
	ids    *task.IDs
	work   schedule.Work

	at    *schedule.Schedule // nil: it does not exist
	old   []store.WriteSchedule
	since time.Time        // its times after it are all decided, up to State.After
	runs  map[task.ID]bool // that records name, or named before the schedule was deleted
}

func runSchedule(t *rapid.T) {
	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err == nil {
		err = db.Migrate(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := &scheduled{T: t, stores: []store.Store{memstore.New(), db}, ids: task.NewIDs(nil), runs: make(map[task.ID]bool)}
	if s.work, err = schedule.NewWork(&store.Submission{Tasks: []task.New{{ID: s.ids.New(), Type: "acme.model.tick.v1", Input: []byte("1"), MaxAttempts: 1}}}); err != nil {
		t.Fatal(err)
	}
	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) { s.T = t; s.compare() },
		"put": func(t *rapid.T) {
			rule := schedule.Rule{
				Spec:    calendar.Spec{Every: rapid.SampledFrom([]calendar.Duration{calendar.Duration(time.Minute), calendar.Duration(time.Hour)}).Draw(t, "every")},
				Overlap: rapid.SampledFrom(schedule.Overlaps()).Draw(t, "overlap"),
			}
			rule.Jitter = rapid.SampledFrom([]calendar.Duration{0, calendar.Duration(20 * time.Second)}).Draw(t, "jitter")
			w, changed, err := schedule.Put(s.at, scheduleName, rule, s.work, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if changed {
				if s.at == nil || s.at.Rule.Spec.Every != rule.Every || s.at.Rule.Spec.Jitter != rule.Jitter {
					s.since = time.Now()
				}
				s.write(w, nil)
			}
		},
		"time passes": func(t *rapid.T) {
			time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, time.Minute, 50 * time.Minute, 3 * time.Hour}).Draw(t, "for"))
		},
		"an engine looks": func(t *rapid.T) {
			if s.at == nil || s.at.Row.LookAt.IsZero() || s.at.Row.LookAt.After(time.Now()) {
				return
			}
			running := s.at.AsksForRun() && rapid.Bool().Draw(t, "running")
			w, stop := s.at.Advance(time.Now(), running, s.ids)
			if stop != nil && (!running || s.at.Describe().Overlap != schedule.CancelRunning) {
				t.Error("it cancels a run that it may not")
			}
			s.write(w, nil)
		},
		"an engine is ahead": func(t *rapid.T) {
			if s.at == nil || s.at.State.Next.IsZero() || s.at.State.Paused != nil {
				return
			}
			fires := s.at.State.Next.Add(time.Duration(s.at.State.Delay))
			if w, _ := s.at.Advance(fires, false, s.ids); fires.After(time.Now()) {
				s.write(w, store.ErrState)
			}
		},
		"a late engine": func(t *rapid.T) {
			if s.at != nil && len(s.old) > 1 {
				s.write(s.old[rapid.IntRange(0, len(s.old)-2).Draw(t, "write")], store.ErrChanged)
			}
		},
		"pause": func(*rapid.T) {
			s.verb(func() (store.WriteSchedule, error) { return s.at.Pause("ann", "", time.Now()) })
		},
		"resume": func(*rapid.T) {
			s.verb(func() (store.WriteSchedule, error) {
				w, err := s.at.Resume(time.Now())
				if err == nil {
					s.since = time.Now()
				}
				return w, err
			})
		},
		"trigger": func(*rapid.T) {
			s.verb(func() (store.WriteSchedule, error) { return s.at.Trigger("ann", "", time.Now(), s.ids), nil })
		},
		"backfill": func(t *rapid.T) {
			from := time.Now().Add(-rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 4 * time.Hour}).Draw(t, "from"))
			s.verb(func() (store.WriteSchedule, error) {
				if _, err := s.at.CheckBackfill(from, time.Now(), time.Now()); err != nil {
					return store.WriteSchedule{}, err
				}
				w, _ := s.at.Backfill(from, time.Now(), "ann", "", s.page(s.stores[0]).Fires, s.ids, time.Now())
				return w, nil
			})
		},
		"delete": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
				s.verb(func() (store.WriteSchedule, error) { return s.at.Delete(), nil })
			}
		},
	})
}

// verb writes what a verb of an existing schedule says. What the state refuses is nothing.
func (s *scheduled) verb(of func() (store.WriteSchedule, error)) {
	if s.at == nil {
		return
	}
	if w, err := of(); err == nil {
		s.write(w, nil)
	}
}

// write applies a write to both stores; want is the error of each.
func (s *scheduled) write(w store.WriteSchedule, want error) {
	for _, st := range s.stores {
		got, err := st.Operate(context.Background(), "default", w)
		if err = cmp.Or(err, got[0].Err); !errors.Is(err, want) || want == nil && err != nil {
			s.Fatalf("%T: revision %d: %v, want %v", st, w.Revision, err, want)
		}
	}
	if want != nil {
		return
	}
	if s.old = append(s.old, w); w.Delete {
		s.old = nil
	}
}

func (s *scheduled) page(st store.Store) store.SchedulePage {
	page, err := st.Schedules(context.Background(), "default", store.ScheduleFilter{Name: scheduleName, Fires: true, Limit: store.MaxScheduleFires})
	if err != nil {
		s.Fatal(err)
	}
	return page
}

// compare compares the stores, and checks the rules.
func (s *scheduled) compare() {
	pages := []store.SchedulePage{s.page(s.stores[0]), s.page(s.stores[1])}
	texts := make([]string, len(pages))
	for i := range pages {
		raw, err := json.Marshal(pages[i])
		if err != nil {
			s.Fatal(err)
		}
		texts[i] = string(raw)
	}
	if texts[0] != texts[1] {
		s.Fatalf("memstore has %s\nSQLite has  %s", texts[0], texts[1])
	}
	page := pages[0]
	s.at = nil
	if len(page.Schedules) == 0 {
		return
	}
	var err error
	if s.at, err = schedule.Read(page.Schedules[0]); err != nil {
		s.Fatal(err)
	}
	s.rules(page.Fires)
}

// rules checks the records of the schedule, newest first.
func (s *scheduled) rules(fires []store.ScheduleFire) {
	decided := 0
	named := make(map[task.ID]bool)
	var next time.Time // the time of the record after it
	for i := range fires {
		f := &fires[i]
		// A run out of turn may be within skipped times, and so may times of another rule that were made up for.
		if f.Reason != "triggered" && f.At.After(s.since) {
			if !next.IsZero() && !next.After(f.Until) {
				s.Errorf("%s to %s and %s have records that overlap", f.At, f.Until, next)
			}
			next = f.At
		}
		if f.RecordedAt.Before(f.At) {
			s.Errorf("%s was decided at %s", f.At, f.RecordedAt)
		}
		if f.At.After(s.since) && f.Reason != "triggered" {
			decided += f.Count
		}
		if f.Kind != store.FireFired {
			continue
		}
		found, err := s.stores[1].Tasks(context.Background(), "default", f.Task)
		if err != nil || len(found) != 1 || named[f.Task] || found[0].Metadata[schedule.Metadata] != f.At.UTC().Format(time.RFC3339Nano) {
			s.Errorf("the run of %s is %+v, %v", f.At, found, err)
		}
		named[f.Task], s.runs[f.Task] = true, true
	}
	stored, _, err := s.stores[1].List(context.Background(), "default", store.Filter{Limit: store.MaxLimit})
	if err != nil || len(stored) != len(s.runs) {
		s.Errorf("%d runs are stored, and records name or named %d: %v", len(stored), len(s.runs), err)
	}
	if s.at.State.After.After(s.since) {
		if n := s.at.When.Count(s.since.Add(time.Second), s.at.State.After.Add(time.Second)); int(n) != decided {
			s.Errorf("from %s to %s the schedule has %d times, and %d are decided", s.since, s.at.State.After, n, decided)
		}
	}
}
