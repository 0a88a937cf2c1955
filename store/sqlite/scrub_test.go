package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

const secret = "4929-1234-5678"

// told returns an ended task with n steps whose values contain the secret.
func (f *fixture) told(n int) task.ID {
	f.Helper()
	sub := f.drafts(1)
	sub.Tasks[0].Input = json.RawMessage(`"` + strings.Repeat(secret, 1000) + `"`)
	if err := f.submit(f.Context(), sub); err != nil {
		f.Fatal(err)
	}
	c := f.claim("w", 1)[0]
	var recs []store.Record
	for i := range n {
		recs = append(recs, store.Record{Lease: c.Lease, Step: &task.Step{
			TaskID: c.Task.ID, Name: fmt.Sprint("s", i), Index: i, Kind: task.KindStep, State: task.StepCompleted,
			AttemptNo: 1, Try: 1, Value: json.RawMessage(`"` + secret + `"`), StartedAt: store.Now(),
		}})
	}
	for _, rec := range recs {
		if got, err := f.db.Record(f.Context(), fixNS, rec); err != nil || got[0].Err != nil {
			f.Fatalf("Record: %v %v", got, err)
		}
	}
	f.finish(c)
	return c.Task.ID
}

// holds returns the files of the database that contain the secret.
func (f *fixture) holds() (files []string) {
	f.Helper()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(f.db.Path() + suffix)
		if err != nil {
			f.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret)) {
			files = append(files, "weaver.db"+suffix)
		}
	}
	return files
}

// A process that dies between two bites, or before the file is clean, leaves enough for the
// next process to continue.
func TestForgetThatWasCutShort(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	id := f.told(2*rules.MaxMoves + 10)
	f.dieAfter(1)
	f.operate(store.ForgetTask{Task: id})
	if got := f.chores(); len(got) != 1 || got[0].Kind != store.ChoreForget {
		t.Fatalf("the chores are %+v, want one that forgets", got)
	}
	rest := `SELECT count(*) FROM weaver_steps WHERE value IS NOT NULL`
	if got := f.count(rest); got == 0 || got == 2*rules.MaxMoves+10 {
		t.Fatalf("%d steps have values, want some", got)
	}
	other := f.elsewhere()
	if len(other.holds()) == 0 {
		t.Fatal("the secret is nowhere")
	}
	if got, err := other.db.Scrub(t.Context(), fixNS); err != nil || !got.Done || got.Bytes == 0 {
		t.Fatalf("Scrub = %+v, %v", got, err)
	}
	if got := other.count(rest); got != 0 {
		t.Errorf("%d steps have values", got)
	}
	if files := other.holds(); len(files) > 0 {
		t.Errorf("the secret is in %v", files)
	}
	if got, err := other.db.Scrub(t.Context(), fixNS); err != nil || got.Done {
		t.Errorf("a second Scrub = %+v, %v, want nothing", got, err)
	}
	other.chores()
}

// The next scrub completes a failed scrub.
func TestScrubBesideAReader(t *testing.T) {
	t.Parallel()
	f := fileFixture(t, sqlite.BusyTimeout(50*time.Millisecond))
	id := f.told(3)
	f.operate(store.ForgetTask{Task: id})
	old := f.elsewhere()
	err := old.db.Read(t.Context(), func(exec func(string) error) error {
		if err := exec("SELECT count(*) FROM weaver_tasks"); err != nil {
			return err
		}
		_, err := f.db.Scrub(t.Context(), fixNS)
		if !errors.Is(err, store.ErrBusy) {
			t.Errorf("Scrub beside a reader: %v, want ErrBusy", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.db.Scrub(t.Context(), fixNS); err != nil || !got.Done {
		t.Errorf("Scrub = %+v, %v", got, err)
	}
	if files := f.holds(); len(files) > 0 {
		t.Errorf("the secret is in %v", files)
	}
}
