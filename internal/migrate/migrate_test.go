package migrate_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/goweaver/weaver/internal/migrate"
)

func files(names ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, n := range names {
		fsys["m/"+n] = &fstest.MapFile{Data: []byte("-- " + n + "\n")}
	}
	return fsys
}

func load(t *testing.T, names ...string) []migrate.Migration {
	t.Helper()
	ms, err := migrate.Load(files(names...), "m")
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func applied(ms []migrate.Migration) []migrate.Applied {
	var list []migrate.Applied
	for _, m := range ms {
		list = append(list, migrate.Applied{Version: m.Version, Name: m.Name, Checksum: m.Checksum, At: time.Unix(int64(m.Version), 0)})
	}
	return list
}

func TestLoad(t *testing.T) {
	t.Parallel()
	ms := load(t, "0002_more.sql", "0001_init.sql")
	if len(ms) != 2 || ms[0].Name != "init" || ms[1].Version != 2 || ms[1].SQL != "-- 0002_more.sql\n" || ms[0].Checksum == ms[1].Checksum {
		t.Errorf("loaded %+v", ms)
	}
	for _, wrong := range [][]string{{"0002_gap.sql"}, {"0001_a.sql", "0001_b.sql"}, {"0001_a.sql", "0003_c.sql"}, {"1_short.sql"}, {"0001_a.txt"}} {
		if _, err := migrate.Load(files(wrong...), "m"); err == nil {
			t.Errorf("%v was accepted", wrong)
		}
	}
	if _, err := migrate.Load(files(), "none"); err == nil {
		t.Error("a folder that is not there was accepted")
	}
}

func TestChecksumIgnoresLineEnds(t *testing.T) {
	t.Parallel()
	sum := func(text string) string {
		ms, err := migrate.Load(fstest.MapFS{"m/0001_a.sql": {Data: []byte(text)}}, "m")
		if err != nil {
			t.Fatal(err)
		}
		return ms[0].Checksum
	}
	if sum("a\nb\n") != sum("a\r\nb\r\n") {
		t.Error("the checksum depends on how lines end")
	}
	if sum("a\nb\n") == sum("a\nc\n") {
		t.Error("the checksum does not depend on the text")
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	known := load(t, "0001_a.sql", "0002_b.sql", "0003_c.sql")
	for n := range 4 {
		got, err := migrate.Pending(known, applied(known[:n]))
		if err != nil || len(got) != 3-n || n < 3 && got[0].Version != n+1 {
			t.Errorf("with %d applied: %v, %v", n, got, err)
		}
	}
	if _, err := migrate.Pending(known[:2], applied(known)); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("a newer database: %v", err)
	}
	edited := applied(known[:2])
	edited[1].Checksum = "edited"
	if _, err := migrate.Pending(known, edited); !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), "0002_b") {
		t.Errorf("an edited migration: %v", err)
	}
	if _, err := migrate.Pending(known, applied(known[1:2])); !errors.Is(err, migrate.ErrChanged) {
		t.Errorf("a gap: %v", err)
	}
}

// Floor decides which programs can work with unknown migrations.
func TestFloor(t *testing.T) {
	t.Parallel()
	adds := "-- additive\nCREATE TABLE x(y);\n"
	raises := "-- It drops a column.\n-- additive\nALTER TABLE x DROP y;\n"
	for _, c := range []struct {
		later []string // after the two known ones
		floor int
	}{
		{nil, 2},
		{[]string{adds}, 2},
		{[]string{strings.ReplaceAll(adds, "\n", "\r\n"), adds}, 2},
		{[]string{raises}, 3},
		{[]string{raises, adds}, 3},
		{[]string{adds, raises}, 4},
		{[]string{"-- additive, nearly\n"}, 3},
	} {
		all := load(t, "0001_a.sql", "0002_b.sql")
		for _, sql := range c.later {
			all = append(all, migrate.Parse(len(all)+1, "later", []byte(sql)))
		}
		d := new(database)
		if _, err := migrate.Run(d, all, migrate.Snapshot{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := migrate.Floor(d.applied); got != c.floor {
			t.Errorf("%q: the floor is %d, want %d", c.later, got, c.floor)
		}
		for knows := range len(all) + 1 {
			missing, err := migrate.Pending(all[:knows], d.applied)
			if refused := knows < c.floor; errors.Is(err, migrate.ErrNewer) != refused || !refused && err != nil || len(missing) > 0 {
				t.Errorf("%q: a program that knows %d: %d pending, %v", c.later, knows, len(missing), err)
			}
		}
		edited := applied(all)
		edited[1].Checksum = "edited"
		if _, err := migrate.Pending(all[:2], edited); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("%q: with an edited migration: %v", c.later, err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	known := load(t, "0001_a.sql", "0002_b.sql")
	list := migrate.List(known, applied(known[:1]))
	if len(list) != 2 || list[0].AppliedAt.IsZero() || !list[1].AppliedAt.IsZero() || list[1].Name != "b" {
		t.Errorf("list %+v", list)
	}
	if list := migrate.List(known[:1], applied(known)); len(list) != 2 || list[1].Name != "b" {
		t.Errorf("a newer database's list %+v", list)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	s := migrate.Script(load(t, "0001_a.sql", "0002_b.sql"))
	if a, b := strings.Index(s, "0001_a.sql"), strings.Index(s, "0002_b.sql"); a < 0 || b < a {
		t.Errorf("script %q", s)
	}
}

// database records the calls of Run.
type database struct {
	applied []migrate.Applied
	ran     []string
	fail    string // the SQL or the name at which it fails
}

var errOwn = errors.New("own error")

func (d *database) Applied() ([]migrate.Applied, error) {
	if d.fail == "applied" {
		return nil, errOwn
	}
	return d.applied, nil
}

func (d *database) Exec(sql string) error {
	if d.fail == sql {
		return errOwn
	}
	d.ran = append(d.ran, sql)
	return nil
}

func (d *database) Record(a migrate.Applied) error {
	if d.fail == a.Name {
		return errOwn
	}
	d.applied = append(d.applied, a)
	return nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	known := load(t, "0001_a.sql", "0002_b.sql", "0003_c.sql")
	snap := migrate.Snapshot{Version: 2, SQL: "a and b"}
	now := time.Unix(7, 0)
	d := &database{applied: applied(known[:1])}
	if n, err := migrate.Run(d, known, snap, now); err != nil || n != 2 {
		t.Fatalf("Run = %d, %v; want 2 migrations", n, err)
	}
	if len(d.ran) != 2 || d.ran[0] != known[1].SQL || d.ran[1] != known[2].SQL {
		t.Errorf("ran %q, want the second and the third", d.ran)
	}
	if a := d.applied[2]; len(d.applied) != 3 || a.Version != 3 || a.Name != "c" || a.Checksum != known[2].Checksum || !a.At.Equal(now) {
		t.Errorf("recorded %+v", d.applied)
	}
	if n, err := migrate.Run(d, known, snap, now); err != nil || n != 0 || len(d.ran) != 2 {
		t.Errorf("a second Run = %d, %v, and ran %q", n, err, d.ran)
	}
	if _, err := migrate.Run(d, known[:2], snap, now); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("Run on a newer database: %v", err)
	}
}

// Run creates an empty database from the snapshot and the later migrations.
func TestRunSnapshot(t *testing.T) {
	t.Parallel()
	known := load(t, "0001_a.sql", "0002_b.sql", "0003_c.sql")
	d := new(database)
	if n, err := migrate.Run(d, known, migrate.Snapshot{Version: 2, SQL: "a and b"}, time.Now()); err != nil || n != 3 {
		t.Fatalf("Run = %d, %v; want 3 migrations", n, err)
	}
	if len(d.ran) != 2 || d.ran[0] != "a and b" || d.ran[1] != known[2].SQL {
		t.Errorf("ran %q, want the snapshot and the third migration", d.ran)
	}
	if missing, err := migrate.Pending(known, d.applied); err != nil || len(missing) > 0 {
		t.Errorf("recorded %+v: %v", d.applied, err)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	known := load(t, "0001_a.sql", "0002_b.sql")
	for at, want := range map[string]string{"applied": "", known[1].SQL: "migration 0002_b", "b": "record migration 0002_b"} {
		d := &database{fail: at}
		_, err := migrate.Run(d, known, migrate.Snapshot{}, time.Now())
		if !errors.Is(err, errOwn) || !strings.Contains(err.Error(), want) {
			t.Errorf("Run that fails at %q: %v", at, err)
		}
		if at == known[1].SQL && len(d.applied) != 1 {
			t.Errorf("a migration that failed was recorded: %+v", d.applied)
		}
	}
}
