package task

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Link locates the bytes of an artifact outside every bucket. Weaver never follows the URL. Readers other than
// handlers see the URL of a value masked, because it may contain a secret.
type Link struct {
	URL    string `json:"url" weaver:"redact"`
	Size   int64  `json:"size,omitempty"`   // of the linked bytes; 0: unknown
	SHA256 string `json:"sha256,omitempty"` // of the linked bytes, in hex; empty: unknown
}

// MaxURL is the maximum length of the URL of a Link, in bytes.
const MaxURL = 8 << 10

// Check validates the link. Its errors do not contain the URL.
func (l Link) Check() error {
	sum, err := hex.DecodeString(l.SHA256)
	switch {
	case l.URL == "":
		return errors.New("the URL is empty: want one like https://host/path")
	case len(l.URL) > MaxURL:
		return fmt.Errorf("the URL has %d bytes, at most %d are allowed", len(l.URL), MaxURL)
	case !utf8.ValidString(l.URL) || strings.ContainsFunc(l.URL, func(r rune) bool { return r <= ' ' || r == 0x7F }):
		return errors.New("the URL must be UTF-8 without spaces and control characters")
	case l.Size < 0:
		return fmt.Errorf("the size of the linked bytes is %d: want 0 (not known) or more", l.Size)
	case l.SHA256 != "" && (err != nil || len(sum) != 32):
		return fmt.Errorf("the hash of the linked bytes, %.80q, is not a SHA-256 in hex (64 digits)", l.SHA256)
	}
	if u, err := url.Parse(l.URL); err != nil || !u.IsAbs() || u.Host == "" && u.Path == "" && u.Opaque == "" {
		return errors.New("the URL has no scheme: want one like https://host/path")
	}
	return nil
}

// Value returns the JSON that a row stores for a link.
func (l Link) Value() json.RawMessage {
	b, _ := json.Marshal(l) // strings and a number always encode
	return b
}

// Link returns the location of an artifact outside every bucket. It returns the zero Link if the bytes are in a
// bucket, or if the link was sealed and could not be opened.
func (a *Artifact) Link() (l Link) {
	if len(a.LinkValue) > 0 && !IsSealed(a.LinkValue) && json.Unmarshal(a.LinkValue, &l) != nil {
		return Link{}
	}
	return l
}
