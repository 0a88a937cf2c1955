package builtin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// handed holds copies of kept files of other tasks, for one command. Crash before
// remove: the folder stays in the temporary directory.
type handed struct {
	dir   string // "": not created
	paths map[string]string
}

func (h *handed) remove() {
	if h.dir != "" {
		_ = os.RemoveAll(h.dir) // a temporary folder, and no caller is left to report to
	}
}

// find adds the kept files of needs to their outputs. A task outside the needs is
// found by its ID, for its files only: an update of a pipeline keeps such tasks.
func (h *handed) find(ctx context.Context, needs value.Find) value.Find {
	return func(name string) (*value.Output, error) {
		o, err := needs(name)
		if id, iderr := task.ParseID(name); o == nil && err == nil && iderr == nil {
			o = &value.Output{Task: name, Kind: value.Other, State: task.Succeeded, ID: id}
		}
		if o != nil {
			o.File = func(file string) (string, error) { return h.copy(ctx, o, file) }
		}
		return o, err
	}
}

// copy copies a file once and returns its path, or the URL of a link.
func (h *handed) copy(ctx context.Context, of *value.Output, name string) (string, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return "", err
	}
	list, err := a.ArtifactsOf(ctx, of.ID)
	if err != nil {
		return "", err
	}
	i := -1
	for n := range slices.Backward(list) {
		if i < 0 && list[n].Name == name {
			i = n
		}
	}
	switch {
	case i < 0:
		return "", &value.Error{Why: fmt.Sprintf("task %q has no artifact %q: it did not keep this file, or its time to live has passed", of.Task, name)}
	case len(list[i].LinkValue) > 0:
		if l := list[i].Link(); l.URL != "" {
			return l.URL, nil
		}
		return "", &value.Error{Why: fmt.Sprintf("the link %q of task %q cannot be read: this worker lacks the key", name, of.Task)}
	}
	key := of.ID.String() + "/" + name
	if path := h.paths[key]; path != "" {
		return path, nil
	}
	if h.dir == "" {
		if h.dir, err = os.MkdirTemp("", "weaver-artifacts-*"); err != nil {
			return "", weaver.NotHere(fmt.Errorf("copy the artifact %q of task %q: %w", name, of.Task, err))
		}
		h.paths = make(map[string]string)
	}
	path := filepath.Join(h.dir, of.ID.String(), filepath.FromSlash(name))
	if err := h.write(ctx, list[i].Ref(), path); err != nil {
		return "", fmt.Errorf("copy the artifact %q of task %q: %w", name, of.Task, err)
	}
	h.paths[key] = path
	return path, nil
}

func (h *handed) write(ctx context.Context, ref weaver.ArtifactRef, path string) error {
	r, err := weaver.OpenArtifact(ctx, ref)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // the last Read verified the hash
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return weaver.NotHere(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return weaver.NotHere(err)
	}
	_, err = io.Copy(ownDisk{f}, r)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = weaver.NotHere(cerr)
	}
	return err
}

// ownDisk is a file of this worker; its write errors are the worker's.
type ownDisk struct{ *os.File }

func (d ownDisk) Write(p []byte) (int, error) {
	n, err := d.File.Write(p)
	if err != nil {
		err = weaver.NotHere(err)
	}
	return n, err
}

// ReadFrom keeps io.Copy from bypassing Write.
func (d ownDisk) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{d}, r) }
