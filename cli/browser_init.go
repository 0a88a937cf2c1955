package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed template/browser
var browserTemplate embed.FS

type browserInitCmd struct {
	Dir string `arg:"" name:"folder" help:"The folder of the new program. It may exist; files in it stay as they are."`
}

// Help implements kong.HelpProvider.
func (browserInitCmd) Help() string {
	return "It writes main.go, the folder web with the page, and go.mod unless a folder above has one."
}

// Run implements the verb.
func (c *browserInitCmd) Run(_ context.Context, s *session) error {
	const root = "template/browser"
	written := []string{}
	err := fs.WalkDir(browserTemplate, root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := fs.ReadFile(browserTemplate, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, root+"/"), ".txt")
		return c.write(name, b, &written)
	})
	if err == nil && !inModule(c.Dir) {
		err = c.write("go.mod", []byte("module example.com/"+filepath.Base(absolute(c.Dir))+"\n\ngo 1.26.0\n"), &written)
	}
	if err != nil {
		return err
	}
	if s.json() {
		return s.writeJSON(map[string]any{"folder": c.Dir, "files": written})
	}
	s.printf("%s has %s. Go on with:\n  cd %[1]s && go mod tidy\n  go run .                              # on this machine\n  %[3]s browser build . && %[3]s browser serve   # in a tab\n",
		c.Dir, strings.Join(written, ", "), s.app.Name)
	return nil
}

func (c *browserInitCmd) write(name string, b []byte, written *[]string) error {
	path := filepath.Join(c.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and stays as it is: name a new folder", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	*written = append(*written, name)
	return errors.Join(err, f.Close())
}

// inModule reports whether a folder, or one above it, has a go.mod.
func inModule(dir string) bool {
	for dir = absolute(dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}
