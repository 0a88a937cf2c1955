package blob

import (
	"context"
	"errors"
	"io"
)

// ctxReader reads until its context ends.
type ctxReader struct {
	ctx context.Context // of the one call that reads
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// ReadStored makes a stream of stored bytes fit for Decode: it ends with ctx, and what
// the bucket itself says of a read, and ctx, is not taken for damage of the bytes.
func ReadStored(ctx context.Context, r io.ReadCloser) io.ReadCloser {
	return &storedReader{ctxReader{ctx, r}, r}
}

type storedReader struct {
	ctxReader
	io.Closer
}

func (s *storedReader) Read(p []byte) (int, error) {
	n, err := s.ctxReader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &storedError{err}
	}
	return n, err
}

// storedError is what the bucket itself says of a read: not of the bytes.
type storedError struct{ err error }

func (e *storedError) Error() string { return e.err.Error() }
func (e *storedError) Unwrap() error { return e.err }

// namedReader says in the error of a Read of which blob it is.
type namedReader struct {
	io.ReadCloser
	name func(error) error
}

func (r *namedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.name(err)
	}
	return n, err
}
