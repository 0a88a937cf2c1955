package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// doctorCmd is the verb doctor.
type doctorCmd struct {
	PostRestore bool `help:"First begin a new generation of the namespace, after it was restored from a backup: leases handed out before become worthless."`
	auditFlags
}

// Help is shown by doctor --help.
func (doctorCmd) Help() string {
	return "Doctor reads everything in the namespace, part by part, and checks that it agrees with itself: states with dispatch rows, " +
		"edges with the tasks they join, keys with who runs, jobs with their tasks. Exit code 1: it does not, and each violation is listed; " +
		"or the store cannot be written, and why."
}

// checkup is what doctor found, for -o json.
type checkup struct {
	Store     string    `json:"store"`
	Namespace string    `json:"namespace"`
	Restored  bool      `json:"restored,omitempty"` // --post-restore was done
	At        time.Time `json:"at"`
	Tasks     int       `json:"tasks"`
	Jobs      int       `json:"jobs"`
	Attempts  int       `json:"attempts"`
	Steps     int       `json:"steps"`
	Clean     bool      `json:"clean"`
	Refuses   string    `json:"cannot_be_written,omitempty"` // why nothing can be stored now

	Violations []violation `json:"violations"`
	Overdue    []violation `json:"overdue_leases,omitempty"` // --post-restore: to be taken back by the next worker
}

// violation is a store.Violation with its JSON names.
type violation struct {
	Invariant string `json:"invariant"`
	ID        string `json:"id"`
	Text      string `json:"text"`
}

// overdueLease is the invariant that only a worker that is up can keep.
const overdueLease = "I8"

// Run implements the verb.
func (c *doctorCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		found := checkup{Store: s.flags.Store, Namespace: client.Namespace()}
		if c.PostRestore {
			if err := c.restored(ctx, client); err != nil {
				return err
			}
			found.Restored = true
		}
		if err := found.examine(ctx, client.Store(), client.Namespace()); err != nil {
			return fmt.Errorf("read the store: %w", err)
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

// restored begins a new generation of the namespace.
func (c *doctorCmd) restored(ctx context.Context, client *weaver.Client) error {
	res, err := client.Store().Operate(ctx, client.Namespace(), store.Restored{Audit: store.Audit{By: c.who(), Reason: c.Reason}})
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		return fmt.Errorf("begin a new generation of the store: %w", err)
	}
	return nil
}

// writable returns what keeps a store from being written, if it can test that.
// Another writer that is at work just now does not.
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

// examine checks a namespace: part by part where the store can show it so.
func (f *checkup) examine(ctx context.Context, s store.Store, ns string) error {
	f.Violations = []violation{}
	if scanner, ok := s.(store.Scanner); ok {
		err := scanner.Scan(ctx, ns, func(p *store.Part) error {
			switch p.Of {
			case store.PartOfTasks:
				f.Tasks, f.Attempts, f.Steps = f.Tasks+len(p.Tasks), f.Attempts+len(p.Attempts), f.Steps+len(p.Steps)
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
	f.Tasks, f.Jobs, f.Attempts, f.Steps = len(snap.Tasks), len(snap.Jobs), len(snap.Attempts), len(snap.Steps)
	f.add(snap.Now, store.Check(snap))
	return nil
}

// add notes what a check found.
func (f *checkup) add(at time.Time, found []store.Violation) {
	f.At = at
	for _, v := range found {
		if f.Restored && v.Invariant == overdueLease {
			// What ran when the backup was made: as it must be, until a worker is up.
			f.Overdue = append(f.Overdue, violation(v))
			continue
		}
		f.Violations = append(f.Violations, violation(v))
	}
	f.Clean = len(f.Violations) == 0
}

func (s *session) printCheckup(f *checkup) {
	if f.Restored {
		s.printf("Namespace %q has a new generation: what was leased before the restore can write nothing any more.\n", f.Namespace)
		if n := len(f.Overdue); n > 0 {
			s.printf("%s ran when the backup was made: the next worker starts what ran again.\n", text.Plural(n, "task"))
		}
	}
	if f.Refuses != "" {
		s.printf("%s: %s.\n", s.paint.Paint(text.Red, "Nothing can be stored"), text.Printable(f.Refuses))
	}
	scope := fmt.Sprintf("%s, %s, %s and %s of namespace %q in %s",
		text.Plural(f.Tasks, "task"), text.Plural(f.Jobs, "job"), text.Plural(f.Attempts, "attempt"), text.Plural(f.Steps, "step"), f.Namespace, f.Store)
	if f.Clean {
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
