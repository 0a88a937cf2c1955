package cli

import (
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// artifactSize formats the size of an artifact; "" for a link without a size.
func artifactSize(a *task.Artifact) string {
	switch l := a.Link(); {
	case len(a.LinkValue) == 0:
		return byteSize(a.Blob.Size)
	case l.Size > 0:
		return byteSize(l.Size)
	}
	return ""
}

// linkText returns the location of a link's bytes, or the reason why it cannot be read.
func linkText(a *task.Artifact) string {
	if err := seal.Failure(a.LinkValue); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return text.OneLine(a.Link().URL, explain.MaxMessage)
}

// refOf returns the reference that artifact get reads.
func refOf(a *task.Artifact) (weaver.ArtifactRef, error) {
	if err := seal.Failure(a.LinkValue); err != nil {
		return weaver.ArtifactRef{}, fmt.Errorf("the link %q cannot be read: %w", a.Name, err)
	}
	return a.Ref(), nil
}

// gotLink is the JSON output of artifact get for a link.
type gotLink struct {
	ID   task.ID `json:"id"`
	Name string  `json:"name"`
	task.Link
}

// link prints the location of the bytes.
func (c *artifactGetCmd) link(s *session, ref *weaver.ArtifactRef) error {
	switch {
	case c.To != "":
		return badInput("Without --to its URL is printed.", "artifact %q is a link: its bytes are elsewhere, and nothing fetches them", ref.Name)
	case s.json():
		return s.writeJSON(gotLink{ref.ID, ref.Name, ref.Link})
	}
	s.printf("%s\n", ref.Link.URL)
	return nil
}
