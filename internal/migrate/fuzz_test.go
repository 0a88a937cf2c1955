package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goweaver/weaver/internal/migrate"
)

// Load returns an error for any directory, or migrations numbered from 1 without gaps and
// named as their files. The checksums depend on the text but not on its line ends.
func FuzzLoad(f *testing.F) {
	for _, names := range [][2]string{
		{"0001_init.sql", "0002_more.sql"},
		{"0001_init.sql", "0001_more.sql"},
		{"0001_init.sql", "0003_more.sql"},
		{"0002_init.sql", "0003_more.sql"},
		{"0001_init.sql", "readme.md"},
		{"0001_Init.sql", "00001_init.sql"},
		{"0001_init.sql\n", "٠٠٠١_init.sql"},
		{"0001_.sql", "0001.sql"},
		{"0001_init.sqlx", "0002_more.sql"},
		{"x0001_init.sql", "0002_more.sql"},
		{"0001_a.sql", "0002_a.sql"},
	} {
		f.Add(names[0], names[1], "CREATE TABLE a(b);\r\nSELECT 1;\n")
	}
	f.Add("0001_init.sql", "0002_more.sql", "\r\r\n\n")
	f.Fuzz(func(t *testing.T, a, b, sql string) {
		fsys := fstest.MapFS{"m/" + a: {Data: []byte(sql)}, "m/" + b: {Data: []byte(sql)}}
		if strings.Contains(a+b, "/") || a == "" || b == "" || a == "." || b == "." || a == ".." || b == ".." {
			return // not a file name
		}
		known, err := migrate.Load(fsys, "m")
		if err != nil {
			if len(known) != 0 || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("%q, %q: %v, %q", a, b, known, err)
			}
			return
		}
		if len(known) != len(fsys) {
			t.Fatalf("%q, %q: %d migrations", a, b, len(known))
		}
		var applied []migrate.Applied
		for i, m := range known {
			file := fmt.Sprintf("%04d_%s.sql", i+1, m.Name)
			if m.Version != i+1 || file != a && file != b || m.SQL != sql {
				t.Errorf("%q, %q: number %d is %+v", a, b, i+1, m)
			}
			applied = append(applied, migrate.Applied{Version: m.Version, Name: m.Name, Checksum: m.Checksum})
			if pending, err := migrate.Pending(known, applied); err != nil || len(pending) != len(known)-len(applied) {
				t.Errorf("after %d of %d: %d pending, %v", len(applied), len(known), len(pending), err)
			}
		}
		if _, err := migrate.Pending(known[1:], applied); !errors.Is(err, migrate.ErrChanged) && !errors.Is(err, migrate.ErrNewer) {
			t.Errorf("another history is accepted: %v", err)
		}
		windows := strings.ReplaceAll(strings.ReplaceAll(sql, "\r\n", "\n"), "\n", "\r\n")
		for text, same := range map[string]bool{windows: true, sql + "-- more": false} {
			again, err := migrate.Load(fstest.MapFS{"m/0001_init.sql": {Data: []byte(text)}}, "m")
			if err != nil || (again[0].Checksum == known[0].Checksum) != same {
				t.Errorf("%q and %q: %+v, %v; want equal checksums: %v", sql, text, again, err, same)
			}
		}
	})
}
