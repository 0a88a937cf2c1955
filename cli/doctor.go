package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// doctorCmd is the verb doctor.
type doctorCmd struct {
	PostRestore bool `help:"Begin a new generation after a restore from a backup."`
	AcceptClock bool `help:"Accept the machine's time if the store's clock is ahead."`
	Deep        bool `help:"Also compare all bytes of the bucket with their hashes."`
	auditFlags
}

// Help is shown by doctor --help.
func (doctorCmd) Help() string {
	return "Reads everything in the namespace, part by part, and checks its consistency: states with dispatch rows, edges with their " +
		"tasks, keys with running tasks, jobs with their tasks, and large values and artifacts with the bucket, for missing and for " +
		"unreferenced data. It exits with 1 and lists each violation if there is one, and with 1 and the reason if a test write to the " +
		"store fails. It warns about risks for the data or the speed of the store: settings with which a server loses acknowledged " +
		"commits, transactions and replication slots that keep dead rows from being removed, tables of mostly dead rows, due tasks " +
		"that no worker starts, hints that the transport of --delivery refused or did not take, pauses that hold up due tasks, undos that failed, need a person, are held up by a pause or have taken " +
		"an hour, dead or silent workers that hold leases, workers that cannot be told apart by their names, clocks that differ, and orders that are held, have an unknown outcome, or stay unsettled." +
		"\n\n--post-restore is for a namespace that was restored from a backup: " +
		"leases handed out before end, their tasks are due again, and unsettled orders are held until `order release`. Stop the programs first. --accept-clock makes the store take the " +
		"time of this machine, if the store's clock was wrong once and is ahead."
}

// checkup is the JSON output of doctor.
type checkup struct {
	Store     string    `json:"store"`
	Namespace string    `json:"namespace"`
	Restored  bool      `json:"restored,omitempty"`                // --post-restore ran
	Ended     int       `json:"ended_leases,omitempty"`            // leases ended by --post-restore; their tasks are due again
	Held      int       `json:"held_orders,omitempty"`             // orders held by --post-restore until they are released
	Accepted  *float64  `json:"clock_went_back_seconds,omitempty"` // set by --accept-clock
	At        time.Time `json:"at"`
	Tasks     int       `json:"tasks"`
	Jobs      int       `json:"jobs"`
	Attempts  int       `json:"attempts"`
	Steps     int       `json:"steps"`
	Signals   int       `json:"signals"`
	Waits     int       `json:"waits"`  // steps that wait for a signal or for tasks that they called
	Chores    int       `json:"chores"` // pending follow-up work of operations, for any worker
	Due       int       `json:"due"`    // tasks that a worker may start now
	Clean     bool      `json:"clean"`
	Refuses   string    `json:"cannot_be_written,omitempty"` // the reason why the store rejects writes

	Violations []violation `json:"violations"`

	Capsule bool `json:"capsule,omitempty"` // only what the rows of one task show was checked

	Bucket *bucketCheckup `json:"bucket,omitempty"`

	Server   map[string]any `json:"server,omitempty"`   // figures of the store's server, if it has one
	Warnings []warning      `json:"warnings,omitempty"` // risks for the store's data or speed

	Delivery *deliveryCheckup `json:"delivery,omitempty"`

	Undos []undoFound `json:"undos,omitempty"` // failed or overdue undos, the first thousand
	undos []task.Task // all undos that were not abandoned
}

// violation is a store.Violation with JSON names.
type violation struct {
	Invariant string `json:"invariant"`
	ID        string `json:"id"`
	Text      string `json:"text"`
}

// warning is a store.Warning with JSON names.
type warning struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// overdueLease is the invariant that holds only while a worker is up.
const overdueLease = "I8"

// Run implements the verb.
func (c *doctorCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		found := checkup{Store: s.store(), Namespace: client.Namespace()}
		if capsuleOf(client.Store()) != nil {
			return found.ofCapsule(ctx, s, client)
		}
		if c.PostRestore {
			ended, err := c.restored(ctx, client)
			if err != nil {
				return err
			}
			found.Restored, found.Ended = true, ended
			if found.Held, err = c.holdOrders(ctx, client); err != nil {
				return err
			}
		}
		if c.AcceptClock {
			if err := acceptClock(ctx, s, client.Store(), &found); err != nil {
				return err
			}
		}
		if err := found.examine(ctx, client.Store(), client.Namespace()); err != nil {
			return fmt.Errorf("read the store: %w", err)
		}
		if err := found.examineBucket(ctx, s, client, c.Deep); err != nil {
			return fmt.Errorf("look at the bucket: %w", err)
		}
		if err := found.examineServer(ctx, client.Store(), client.Namespace()); err != nil {
			return err
		}
		if err := found.examineOverview(ctx, s, client); err != nil {
			return err
		}
		found.examineDelivery(ctx, s)
		if err := found.examineOrders(ctx, s, client); err != nil {
			return err
		}
		if err := writable(ctx, client.Store()); err != nil {
			found.Refuses = err.Error()
		}
		if s.json() {
			if err := s.writeJSON(found); err != nil {
				return err
			}
		} else {
			s.printCheckup(&found)
		}
		if !found.Clean || found.Refuses != "" {
			return silent(exitFailed)
		}
		return nil
	})
}

// restored begins a new generation of the namespace and returns the number of ended leases.
func (c *doctorCmd) restored(ctx context.Context, client *weaver.Client) (int, error) {
	res, err := client.Store().Operate(ctx, client.Namespace(), store.Restored{Audit: store.Audit{By: c.who(), Reason: c.Reason}, EndLeases: true})
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		return 0, fmt.Errorf("begin a new generation of the store: %w", err)
	}
	return res[0].Leases, nil
}

// clockAccepter is implemented by stores that keep their own clock.
type clockAccepter interface {
	// AcceptClock makes the store adopt the machine's time and returns the time by which the store was ahead.
	AcceptClock(ctx context.Context) (ahead time.Duration, err error)
}

func acceptClock(ctx context.Context, s *session, st store.Store, found *checkup) error {
	a, ok := st.(clockAccepter)
	if !ok {
		return badInput("Set the clock of that machine.", "--accept-clock: %s has the clock of its server", s.store())
	}
	ahead, err := a.AcceptClock(ctx)
	if err != nil {
		return err
	}
	by := ahead.Round(time.Second).Seconds()
	found.Accepted = &by
	return nil
}

// writable returns the reason why a store rejects writes, if the store can test that. A concurrent writer is not a
// reason.
func writable(ctx context.Context, s store.Store) error {
	w, ok := s.(writeProber)
	if !ok {
		return nil
	}
	if err := w.Writable(ctx); !errors.Is(err, store.ErrBusy) {
		return err
	}
	return nil
}

// examine checks a namespace, part by part if the store supports it.
func (f *checkup) examine(ctx context.Context, s store.Store, ns string) error {
	f.Violations = []violation{}
	before := time.Now()
	if s.Capabilities().Has(store.CanScan) {
		err := s.Scan(ctx, ns, func(p *store.Part) error {
			f.compareClocks(s, p.Now, before)
			switch p.Of {
			case store.PartOfTasks:
				f.count(p.Snapshot)
			case store.PartOfJobs:
				f.Jobs += len(p.Jobs)
			}
			f.add(p.Now, store.CheckPart(p))
			return nil
		})
		return err
	}
	snap, err := s.Snapshot(ctx, ns)
	if err != nil {
		return err
	}
	f.compareClocks(s, snap.Now, before)
	f.count(snap)
	f.Jobs = len(snap.Jobs)
	f.add(snap.Now, store.Check(snap))
	return nil
}

// count counts rows that belong to tasks. A new kind of row in store.Part must be counted here and checked in
// store.CheckPart.
func (f *checkup) count(s *store.Snapshot) {
	f.Tasks, f.Attempts, f.Steps, f.Signals = f.Tasks+len(s.Tasks), f.Attempts+len(s.Attempts), f.Steps+len(s.Steps), f.Signals+len(s.Signals)
	f.noteUndos(s)
	f.Chores = len(s.Chores) // each part has all chores
	for i := range s.Steps {
		if s.Steps[i].State == task.StepWaiting {
			f.Waits++
		}
	}
	for i := range s.Dispatch {
		d := &s.Dispatch[i]
		if !d.AvailableAt.After(s.Now) {
			f.Due++
		}
		f.noteHint(d)
	}
}

// add records the violations of a check.
func (f *checkup) add(at time.Time, found []store.Violation) {
	f.At = at
	for _, v := range found {
		if f.Capsule && needsOthers(v.Invariant) {
			continue
		}
		f.Violations = append(f.Violations, violation(v))
	}
	f.Clean = len(f.Violations) == 0
}

func (s *session) printCheckup(f *checkup) {
	if f.Restored {
		s.printRestored(f)
	}
	if f.Accepted != nil {
		s.printf("The store takes this machine's time; its clock was %s ahead.\n", text.Setting(time.Duration(*f.Accepted)*time.Second))
	}
	if f.Refuses != "" {
		s.printf("%s: %s.\n", s.paint.Paint(text.Red, "Nothing can be stored"), text.Printable(f.Refuses))
	}
	scope := fmt.Sprintf("%s, %s, %s and %s of namespace %q in %s",
		text.Plural(f.Tasks, "task"), text.Plural(f.Jobs, "job"), text.Plural(f.Attempts, "attempt"), text.Plural(f.Steps, "step"), f.Namespace, f.Store)
	s.printServer(f)
	s.printDelivery(f.Delivery)
	defer s.printBucket(f.Bucket)
	if len(f.Violations) == 0 {
		s.printf("%s: %s.\n", s.paint.Paint(text.Green, "No violations"), scope)
		return
	}
	s.printf("%s in %s:\n", s.paint.Paint(text.Red, text.Plural(len(f.Violations), "violation")), scope)
	defects := 0
	for _, v := range f.Violations {
		s.printf("%s\n", indent("  ", text.Printable(v.Invariant+": "+v.Text)))
		if v.Invariant != overdueLease {
			defects++
		}
	}
	if overdue := len(f.Violations) - defects; overdue > 0 {
		s.printf("%s: no worker of this namespace has been up since, or not for a whole lease yet. Start one, and look again after that.\n", overdueLease)
	}
	if defects > 0 {
		s.printf("This is a defect of the store, or its rows were changed by hand: stop the workers, keep a copy of the file, and report it.\n")
	}
}
