package blob

import (
	"context"
	"errors"
	"io"
)

// ctxReader reads until its context ends.
type ctxReader struct {
	ctx context.Context // of the current read
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// ReadStored prepares a stream of stored bytes for Decode. It ends with ctx. Errors of the bucket and of ctx are not
// treated as corruption of the bytes.
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

// storedError is an error of the bucket, not of the bytes.
type storedError struct{ err error }

func (e *storedError) Error() string { return e.err.Error() }
func (e *storedError) Unwrap() error { return e.err }

// namedReader wraps Read errors with the blob's key.
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
