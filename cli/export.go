package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/build"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store/sqlite"
)

// exportCmd is the verb export.
type exportCmd struct {
	ID         string `arg:"" name:"id" help:"Task or job: ID, prefix, name, JOB/TASK."`
	To         string `placeholder:"FILE" help:"Path of the new file; default: ID.capsule."`
	Force      bool   `help:"Replace the file if it exists."`
	NoPayloads bool   `help:"Leave out inputs, outputs, values, artifacts, events and logs."`
	MaxMiB     int64  `name:"max-mib" default:"64" placeholder:"N" help:"Limit of artifacts and large values; default 64."`
}

// Help is shown by export --help.
func (exportCmd) Help() string {
	return "Writes a capsule: one file with a task and its children, or with all tasks of a job, to attach to a report. It has their " +
		"states, attempts, decisions, steps, signals, events, logs and artifacts, the schemas of their types, and no other task. Masked " +
		"fields are masked in it for good (docs/privacy.md), and so are their texts wherever else they occur; encrypted values are decrypted first, " +
		"with --codec-key. What was left out is listed. " +
		"Tasks may run meanwhile." +
		"\n\nA capsule is a store that is only read: no worker runs what is in it, and task, job, why, logs, artifact and serve work with --store " +
		"sqlite:FILE. `replay` shows what it recorded, and weavertest.ReplayCapsule makes a test of it."
}

// exported is the JSON output of export.
type exported struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	capsule.Info
}

// Run implements the verb.
func (c *exportCmd) Run(ctx context.Context, s *session) error {
	if c.MaxMiB < 0 {
		return badInput("", "--max-mib %d: want 0 or more", c.MaxMiB)
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantAny, c.ID)
		if err != nil {
			return err
		}
		got, err := capsule.Collect(ctx, client, id, capsule.Options{NoPayloads: c.NoPayloads, Limit: max(c.MaxMiB<<20, 1), Weaver: build.Version()})
		if err != nil {
			return s.absent(ctx, client, "task or job", id, err)
		}
		if n := s.commandsOf(got); n > 0 {
			got.LeftOut = append(got.LeftOut, capsule.LeftOut{What: "the output of " + text.Plural(n, "command"), Why: "it is in files beside the store; its end is in errors and outputs"})
		}
		to := c.To
		if to == "" {
			to = id.String() + ".capsule"
		}
		if dir := filepath.Dir(to); !isFolder(dir) {
			return badInput("Create it first.", "the folder %s does not exist", dir)
		}
		size, err := capsule.Write(ctx, openCapsule, to, c.Force, got)
		if errors.Is(err, fs.ErrExist) {
			return badInput("Name another file, or give --force.", "%s exists already", to)
		}
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(exported{to, size, got.Info})
		}
		s.printf("%s: %s of %s, %s.\n", to, text.Plural(got.Info.Tasks, "task"), rootOf(&got.Info), byteSize(size))
		s.printLeftOut(&got.Info)
		return nil
	})
}

// commandsOf returns the number of tasks whose last attempt left the output of a command on this machine.
func (s *session) commandsOf(c *capsule.Content) (n int) {
	dir := s.logFolder()
	if dir == "" || !isFolder(dir) {
		return 0
	}
	k := keptLogs{folder: s.logsIn(dir, func(error) {})}
	defer k.close()
	for i := range c.Tasks {
		if k.has(&c.Tasks[i].Task) {
			n++
		}
	}
	return n
}

// openCapsule opens a database file for package capsule.
func openCapsule(ctx context.Context, path string) (capsule.DB, error) {
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err // not the nil *DB: the interface would not be nil
	}
	return db, nil
}

// rootOf names what a capsule was made of.
func rootOf(i *capsule.Info) string {
	if !i.Job.IsZero() {
		return "job " + i.Job.String()
	}
	return "task " + i.Task.String()
}

func (s *session) printLeftOut(i *capsule.Info) {
	for n := range i.LeftOut {
		s.printf("Left out: %s.\n", text.Printable(i.LeftOut[n].String()))
	}
}

// capsuled is implemented by stores that may be capsules.
type capsuled interface{ Capsule() []byte }

// capsuleOf returns the database of a store that is a capsule, or nil.
func capsuleOf(st any) capsule.DB {
	if c, ok := st.(capsuled); !ok || c.Capsule() == nil {
		return nil
	}
	db, _ := st.(capsule.DB)
	return db
}

// ofCapsule checks a capsule. Nothing can be stored in it, and the tasks and rows that others are checked with are not
// in it.
func (f *checkup) ofCapsule(ctx context.Context, s *session, client *weaver.Client) error {
	f.Capsule = true
	if err := f.examine(ctx, client.Store(), client.Namespace()); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	if s.json() {
		if err := s.writeJSON(f); err != nil {
			return err
		}
	} else {
		s.printCheckup(f)
	}
	if !f.Clean {
		return silent(exitFailed)
	}
	return nil
}

// needsOthers reports whether an invariant is about leases in time, dispatch rows, keys, or other tasks.
func needsOthers(invariant string) bool {
	return slices.Contains([]string{overdueLease, "I7", "I9", "I11", "I12", "I13", "I15"}, invariant)
}
