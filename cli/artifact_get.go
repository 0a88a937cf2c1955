package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/task"
)

// artifactGetCmd is the verb artifact get.
type artifactGetCmd struct {
	Artifact string `arg:"" name:"artifact" help:"Artifact ID, TASK/NAME, or the ID of a blob."`
	To       string `placeholder:"FILE" help:"Output file; default: the standard output."`
	Force    bool   `help:"Replace the file if it exists."`
}

// Help is shown by artifact get --help.
func (artifactGetCmd) Help() string {
	return "Writes the bytes as a stream and compares them with their hash. TASK is a task's ID, a prefix of it, or JOB/TASK; the ID of a " +
		"blob names a large value. A file gets its name after its bytes were verified. On the standard output bytes appear before " +
		"that: the exit code is 1 if they have changed. For a link the whole URL is printed, and nothing is fetched."
}

// gotArtifact is the JSON output of artifact get.
type gotArtifact struct {
	ID     task.ID `json:"id"`
	Name   string  `json:"name"`
	File   string  `json:"file"`
	Bytes  int64   `json:"bytes"`
	SHA256 string  `json:"sha256"`
}

// Run implements the verb.
func (c *artifactGetCmd) Run(ctx context.Context, s *session) error {
	if c.To == "" && c.Force {
		return badInput("", "--force is for --to FILE")
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		ref, err := s.sourceOf(ctx, client, c.Artifact)
		if err != nil {
			return err
		}
		switch {
		case ref.Link != task.Link{}:
			return c.link(s, &ref)
		case c.To == "" && s.json():
			return badInput("The standard output carries the bytes; -o json reports a written file.", "artifact get -o json needs --to FILE")
		}
		if c.To != "" && !c.Force {
			if _, err := os.Lstat(c.To); err == nil {
				return c.exists()
			}
		}
		r, err := client.OpenArtifact(ctx, ref)
		if errors.Is(err, blob.ErrNoBucket) {
			return s.noBucket()
		}
		if err != nil {
			return err
		}
		if c.To == "" {
			_, err := io.Copy(s.live, r)
			return errors.Join(err, r.Close())
		}
		if err := errors.Join(c.write(r), r.Close()); err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(gotArtifact{ref.ID, ref.Name, c.To, ref.Blob.Size, ref.Blob.SHA256})
		}
		s.printf("%s: %s.\n", c.To, byteSize(ref.Blob.Size))
		return nil
	})
}

func (c *artifactGetCmd) exists() error {
	return badInput("Name another file, or give --force.", "%s exists already", c.To)
}

// write writes a temporary file in the same folder and renames it when it is complete. Crash here: FILE.partial-…
// stays.
func (c *artifactGetCmd) write(r io.Reader) (err error) {
	dir, name := filepath.Split(c.To)
	f, err := os.CreateTemp(dir, name+".partial-*")
	if errors.Is(err, fs.ErrNotExist) {
		return badInput("Create it first.", "the folder of %s does not exist", c.To)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.To, err)
	}
	defer func() { err = errors.Join(err, removeIfThere(f.Name())) }()
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", c.To, err)
	}
	if c.Force {
		return os.Rename(f.Name(), c.To)
	}
	err = os.Link(f.Name(), c.To) // Link never replaces a file, even one created in between
	if errors.Is(err, fs.ErrExist) {
		return c.exists()
	}
	if err != nil { // a file system without hard links
		err = os.Rename(f.Name(), c.To)
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
