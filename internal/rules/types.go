package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CheckTypes returns announced types in the form that a store keeps: schemas with sorted
// object keys, without the announcing worker. It returns [store.ErrLimit], or an error that
// names the malformed type.
func CheckTypes(cmd *store.AnnounceTypes) ([]store.AnnouncedType, error) {
	types := make([]store.AnnouncedType, len(cmd.Types))
	for i, t := range cmd.Types {
		if err := checkType(&t); err != nil {
			return nil, fmt.Errorf("announce the type %q: %w", t.Name, err)
		}
		types[i] = t
	}
	return types, nil
}

func checkType(t *store.AnnouncedType) (err error) {
	if err := task.CheckTypeName(t.Name); err != nil {
		return err
	}
	if t.SchemaVersion < 1 || t.CodeVersion < 0 {
		return fmt.Errorf("its schema version is %d and its code version %d: want at least 1 and 0", t.SchemaVersion, t.CodeVersion)
	}
	if n := len(t.Description); n > store.MaxTypeText {
		return fmt.Errorf("%w: its description has %d bytes, at most %d are kept", store.ErrLimit, n, store.MaxTypeText)
	}
	if t.Input, err = canonicalSchema("input", t.Input); err != nil {
		return err
	}
	if t.Output, err = canonicalSchema("output", t.Output); err != nil {
		return err
	}
	t.AnnouncedAt, t.AnnouncedBy = time.Time{}, ""
	return nil
}

// canonicalSchema returns a schema with sorted object keys and unchanged number texts.
func canonicalSchema(of string, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	if err == nil {
		if _, end := dec.Token(); end != io.EOF {
			err = errors.New("more follows the first value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the schema of its %s is not JSON: %w", of, err)
	}
	switch v.(type) {
	case map[string]any, bool:
	default:
		return nil, fmt.Errorf("the schema of its %s is neither an object nor true or false", of)
	}
	kept, err := json.Marshal(v)
	if len(kept) > store.MaxTypeSchema {
		return nil, fmt.Errorf("%w: the schema of its %s has %d bytes, at most %d are kept", store.ErrLimit, of, len(kept), store.MaxTypeSchema)
	}
	return kept, err
}

// KnownType holds the fields of a stored type that decide about its next announcement.
type KnownType struct {
	SchemaVersion, CodeVersion int
	Digest                     string
}

// TypeBody returns the announced body of a type without its code version, and the digest of
// the body.
func TypeBody(t store.AnnouncedType) (body []byte, digest string, err error) {
	t.CodeVersion = 0
	if body, err = json.Marshal(t); err != nil {
		return nil, "", fmt.Errorf("encode the type %s: %w", t.Name, err)
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:]), nil
}

// Announced reports whether an announced type is stored, and with which code version. known is
// the stored type, or nil.
func Announced(known *KnownType, t *store.AnnouncedType, digest string) (codeVersion int, write bool) {
	if known == nil {
		return t.CodeVersion, true
	}
	if codeVersion = t.CodeVersion; codeVersion == 0 {
		codeVersion = known.CodeVersion
	}
	return codeVersion, t.SchemaVersion >= known.SchemaVersion && (digest != known.Digest || codeVersion != known.CodeVersion)
}
