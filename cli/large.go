package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxLoaded is the total size in bytes of a task's large values in -o json; further values stay references to their
// blobs.
const maxLoaded = 8 << 20

// openValue opens the bytes of a large value.
func openValue(ctx context.Context, client *weaver.Client, b task.Blob) (io.ReadCloser, error) {
	return client.OpenArtifact(ctx, weaver.ArtifactRef{ID: b.ID, Name: "blob " + b.ID.String(), Blob: b})
}

// shownValue is jsonText for a value that may be in the bucket. It reads only the part that it shows.
func (s *session) shownValue(ctx context.Context, client *weaver.Client, raw json.RawMessage) string {
	b, large := task.BlobOf(raw)
	if !large {
		return jsonText(raw)
	}
	start, err := func() ([]byte, error) {
		r, err := openValue(ctx, client, b)
		if err != nil {
			return nil, err
		}
		start, err := io.ReadAll(io.LimitReader(r, maxShown))
		return start, errors.Join(err, r.Close())
	}()
	if err != nil {
		return fmt.Sprintf("%s in the bucket, which cannot be read: %s", byteSize(b.Size), text.Printable(err.Error()))
	}
	return text.OneLine(text.PlainJSON(string(start)), maxShown) + fmt.Sprintf("… (%s in the bucket; `%s` shows all)", byteSize(b.Size), s.command("artifact", "get", b.ID.String()))
}

// largeNote returns the size of a value in the bucket as text; "" for any other value.
func largeNote(raw json.RawMessage) string {
	if b, large := task.BlobOf(raw); large {
		return byteSize(b.Size) + " in the bucket: blob " + b.ID.String()
	}
	return ""
}

// loadValues replaces references by the large values of a task, up to maxLoaded bytes in total. An unreadable value
// stays a reference.
func loadValues(ctx context.Context, client *weaver.Client, h *store.History) {
	left := int64(maxLoaded)
	load := func(raw *json.RawMessage) {
		b, large := task.BlobOf(*raw)
		if !large || b.Size > left {
			return
		}
		r, err := openValue(ctx, client, b)
		if err != nil {
			return
		}
		whole, err := io.ReadAll(r)
		if errors.Join(err, r.Close()) == nil {
			*raw, left = whole, left-b.Size
		}
	}
	load(&h.Task.Input)
	load(&h.Task.Output)
	for i := range h.Steps {
		load(&h.Steps[i].Value)
	}
}
