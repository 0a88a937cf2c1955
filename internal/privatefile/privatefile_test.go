//go:build unix

package privatefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/privatefile"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, folder os.FileMode
		owner        int
		warns, says  string
	}{
		"private":             {0o600, 0o755, 0, "", ""},
		"read only":           {0o400, 0o700, 0, "", ""},
		"read by all":         {0o644, 0o755, 0, "has mode 0644, so other users can read it: `chmod 600 ", ""},
		"read by a group":     {0o640, 0o755, 0, "so other users can read it", ""},
		"written by all":      {0o666, 0o755, 0, "", "has mode 0666, so other users can change it: `chmod 600 "},
		"written by a group":  {0o660, 0o755, 0, "", "so other users can change it"},
		"another user's":      {0o600, 0o755, 65534, "", "belongs to user 65534, who can change it: `chown "},
		"in a shared folder":  {0o600, 0o777, 0, "", "every user can write to the folder"},
		"in a sticky folder":  {0o600, 0o777 | os.ModeSticky, 0, "", ""},
		"behind a link":       {0o666, 0o755, 0, "", "so other users can change it"},
		"a file that is gone": {0, 0o777, 0, "", ""},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		path := filepath.Join(dir, "secret")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.file != 0 {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.file); err != nil {
				t.Fatal(err)
			}
			if c.owner != 0 && os.Chown(path, c.owner, c.owner) != nil {
				continue // only root can give files away
			}
		}
		if err := os.Chmod(dir, c.folder); err != nil {
			t.Fatal(err)
		}
		if name == "behind a link" {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			path = link
		}
		warning, err := privatefile.Check(path)
		if (warning != "") != (c.warns != "") || !strings.Contains(warning, c.warns) {
			t.Errorf("%s: the warning is %q, want %q", name, warning, c.warns)
		}
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
