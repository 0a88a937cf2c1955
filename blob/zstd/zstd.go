// Package zstd compresses the blobs of a bucket of package blob.
package zstd

import (
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/goweaver/weaver/blob"
)

// Codec compresses bytes with Zstandard if their first 64 KiB shrink by at least an eighth. It streams, with a few
// MiB of memory for each stream:
//
//	bucket := blob.Dir("blobs", zstd.Codec())
func Codec() blob.Codec { return codec{} }

type codec struct{}

const window = 1 << 20

func (codec) Name() string { return "zstd" }

// least is the minimum number of bytes worth compressing.
const least = 512

func (codec) Wants(head []byte) bool {
	if len(head) < least {
		return false
	}
	var n counter
	w, err := codec{}.Writer(&n)
	if err != nil {
		return false
	}
	_, err = w.Write(head)
	if cerr := w.Close(); err != nil || cerr != nil {
		return false
	}
	return int(n) <= len(head)-len(head)/8
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (codec) Writer(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
}

func (codec) Reader(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}
