package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// artifact writes the bytes of a task's artifact.
func (c *call) artifact() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	of, err := c.idParam("task")
	if err != nil {
		return err
	}
	reading, cancel := c.context()
	defer cancel()
	if of.IsZero() {
		if of, err = c.taskOf(reading, id); err != nil {
			return err
		}
	}
	list, err := c.api.client.Artifacts(reading, of)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(a task.Artifact) bool { return a.ID == id })
	if i < 0 {
		return notFound.of("The task has no artifact with this id.")
	}
	a := &list[i]
	if a.LinkValue != nil {
		return notFound.of("The artifact is a link, whose bytes are elsewhere: /v1/tasks/%s/artifacts says where.", of)
	}
	media := anyMedia
	if _, _, err := mime.ParseMediaType(a.ContentType); err == nil {
		media = a.ContentType
	}
	out, err := c.download(media)
	if err != nil {
		return err
	}
	defer out.close()
	r, err := c.api.client.OpenArtifact(out.ctx, a.Ref())
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // its last Read reports errors
	h := c.w.Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(a.Name)}))
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox") // even if a browser shows it
	h.Set("Content-Length", strconv.FormatInt(a.Blob.Size, 10))
	if c.r.Method == http.MethodHead {
		_, err := out.Write(nil)
		return err
	}
	// The last Read verifies the bytes, so the end of the bytes is withheld until then: a client
	// never takes changed bytes for complete ones.
	held := &lastHeld{w: out}
	if err := copyUntil(out.ctx, held, r); err != nil {
		return out.broken(err)
	}
	if err := held.release(); err != nil {
		return out.broken(err)
	}
	return nil
}

// taskOf returns the task with an artifact, the oldest if several have it.
func (c *call) taskOf(ctx context.Context, id task.ID) (task.ID, error) {
	r := c.api.client.Store()
	if !r.Capabilities().Has(store.CanListBlobs) {
		return task.ID{}, badParam("task", "it is left out, and this kind of store finds no artifact by its id alone: want the id of the task that has it")
	}
	a, err := r.Artifact(ctx, c.api.client.Namespace(), id)
	if errors.Is(err, store.ErrNotFound) {
		return task.ID{}, notFound.of("There is no artifact with this id.")
	}
	return a.TaskID, err
}
