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

// Link says where the bytes of an artifact are that no bucket has. Nothing follows it.
// Readers that are not handlers see the URL masked where it is in a value: it may
// hold a secret.
type Link struct {
	URL    string `json:"url" weaver:"redact"`
	Size   int64  `json:"size,omitempty"`   // of the bytes there; 0: not known
	SHA256 string `json:"sha256,omitempty"` // of the bytes there, in hex; "": not known
}

// MaxURL is how long the URL of a Link may be, in bytes.
const MaxURL = 8 << 10

// Check returns what is wrong with a link. Its texts have nothing of the URL.
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
		return fmt.Errorf("the hash of the linked bytes, %.80q, is no SHA-256 in hex (64 digits)", l.SHA256)
	}
	if u, err := url.Parse(l.URL); err != nil || !u.IsAbs() || u.Host == "" && u.Path == "" && u.Opaque == "" {
		return errors.New("the URL is none with a scheme: want one like https://host/path")
	}
	return nil
}

// Value returns what a row has of a link.
func (l Link) Value() json.RawMessage {
	b, _ := json.Marshal(l) // texts and a number
	return b
}

// Link returns where the bytes of an artifact are that no bucket has; the zero Link if
// one has them, or if the link was sealed and could not be opened.
func (a *Artifact) Link() (l Link) {
	if len(a.LinkValue) > 0 && !IsSealed(a.LinkValue) && json.Unmarshal(a.LinkValue, &l) != nil {
		return Link{}
	}
	return l
}
