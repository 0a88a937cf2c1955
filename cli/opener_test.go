package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goweaver/weaver/cli"
)

// The password of a store URL with an unknown form is not printed.
func TestStoresKeepTheirPasswords(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]string{
		"root:hunter2@tcp(db)/x":              `--store "root:…"`,
		"mysql://h/db?password=hunter2":       `--store "mysql:…"`,
		"mysql://me:hunter2@h/db":             `--store "mysql:…"`,
		"mysql://h/db#hunter2":                `--store "mysql:…"`,
		"postgres://me:hunter2@h:x/db":        "--store: the URL postgres://me:xxxxx@h:x/db is wrong",
		"postgres://me:hunter2@@h/db":         "--store: the URL has a misplaced @",
		"postgres://h/db?password=hunter2&x":  "--store: the URL has a parameter without a value",
		"postgresql:hunter2":                  "--store: the URL has no scheme",
		"me@hunter2:x":                        `--store "…"`,
		"me:hunter2@h":                        `--store "me:…"`,
		"hunter2@h":                           `--store "…"`,
		"host=db password=hunter2":            `--store "…"`,
		"sqlserver:server=h;password=hunter2": `--store "sqlserver:…"`,
		"sqlite://me:hunter2@h/db":            `--store "sqlite:…"`,
		"memory:":                             `--store "memory:"`,
		"mysql://h/db":                        `--store "mysql://h/db"`,
		"sqlite:///var/lib/weaver.db":         `--store "sqlite:///var/lib/weaver.db"`,
		"other.db":                            `--store "other.db"`,
	} {
		var stdout, stderr bytes.Buffer
		code := cli.Run(t.Context(), cli.App{}, []string{"--store=" + store, "task", "ls"}, strings.NewReader(""), &stdout, &stderr)
		if code != 2 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "weaver: "+want) {
			t.Errorf("%s: exit code %d, %s, want %s", store, code, stderr.String(), want)
		}
		if strings.Contains(stderr.String(), "hunter2") {
			t.Errorf("%s: %s", store, stderr.String())
		}
	}
}
