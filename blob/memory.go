package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Memory is a Bucket in the memory of this process. Use NewMemory.
type Memory struct {
	codecs []Codec

	mu    sync.Mutex
	blobs map[string]kept
}

type kept struct {
	stored []byte // immutable
	at     time.Time
}

// NewMemory returns an empty Bucket in memory, for tests and for stores in memory.
func NewMemory(codecs ...Codec) *Memory {
	return &Memory{codecs: codecs, blobs: make(map[string]kept)}
}

var (
	_ Bucket  = (*Memory)(nil)
	_ Checker = (*Memory)(nil)
)

// Check implements Checker.
func (m *Memory) Check() error {
	if m == nil {
		return errors.New("the *blob.Memory is nil: make one with blob.NewMemory")
	}
	return checkCodecs(m.codecs)
}

// Codecs returns the codecs that the bucket was opened with; see CodecsOf.
func (m *Memory) Codecs() []Codec { return m.codecs }

// Put implements Bucket.
func (m *Memory) Put(ctx context.Context, key string, r io.Reader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := Encode(&b, &ctxReader{ctx, r}, m.codecs...); err != nil {
		return fmt.Errorf("put blob %s: %w", key, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put blob %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[key] = kept{b.Bytes(), time.Now()}
	return nil
}

// Get implements Bucket.
func (m *Memory) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	m.mu.Lock()
	k, ok := m.blobs[key]
	m.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", key, ErrNotFound)
	}
	name := func(err error) error { return fmt.Errorf("blob %s: %w", key, err) }
	r, err := Decode(ReadStored(ctx, io.NopCloser(bytes.NewReader(k.stored))), m.codecs...)
	if err != nil {
		return nil, name(err)
	}
	return &namedReader{r, name}, nil
}

// Delete implements Bucket.
func (m *Memory) Delete(_ context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, key)
	return nil
}

// List implements Bucket.
func (m *Memory) List(ctx context.Context, prefix string, each func(Info) bool) error {
	m.mu.Lock()
	var all []Info
	for key, k := range m.blobs {
		if strings.HasPrefix(key, prefix) {
			all = append(all, Info{key, int64(len(k.stored)), k.at})
		}
	}
	m.mu.Unlock()
	for _, i := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !each(i) {
			return nil
		}
	}
	return nil
}

// Damage changes one stored byte of a key, for tests of readers. It reports whether there was one.
func (m *Memory) Damage(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.blobs[key]
	if !ok {
		return false
	}
	k.stored = bytes.Clone(k.stored)
	k.stored[len(k.stored)-1] ^= 1
	m.blobs[key] = k
	return true
}
