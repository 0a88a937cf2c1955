package redact

import (
	"encoding/json"
	"net/url"

	"github.com/goweaver/weaver/task"
)

// Artifact is the source name for the link of an artifact.
const Artifact = "artifact"

// Artifacts masks the links of a task's artifacts for lists.
func Artifacts(of []string, list []task.Artifact) {
	New(of).artifacts(list)
}

// artifacts masks the parts of a URL that are often secret, and those that the rules select.
func (r *Rules) artifacts(list []task.Artifact) {
	for i := range list {
		a := &list[i]
		l := a.Link()
		if l.URL == "" {
			continue
		}
		l.URL = URL(l.URL)
		a.LinkValue = r.JSON(Artifact, json.RawMessage(l.Value()))
	}
}

// URL returns a URL with its user, query and fragment masked.
func URL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return Mask
	case u.Opaque != "":
		return u.Scheme + ":" + Mask
	}
	shown := u.Scheme + "://"
	if u.User != nil {
		shown += Mask + "@"
	}
	shown += u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		shown += "?" + Mask
	}
	if u.Fragment != "" {
		shown += "#" + Mask
	}
	return shown
}
