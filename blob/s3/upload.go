package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
)

// maxParts is the maximum number of parts of a multipart upload.
const maxParts = 10_000

// upload collects what is written to it and sends it in parts.
type upload struct {
	ctx    context.Context // of the Put
	b      *Bucket
	object string
	put    string // value of the marker
	part   []byte // not yet sent
	id     string // of the multipart upload, "" before its first part
	sent   []minio.CompletePart
	ending bool // the request that makes the object visible was sent
}

func (u *upload) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if len(u.part) == u.b.partSize {
			if err := u.send(); err != nil {
				return n, err
			}
		}
		take := min(len(p), u.b.partSize-len(u.part))
		if need := len(u.part) + take; need > cap(u.part) {
			grown := make([]byte, len(u.part), u.grow(need))
			copy(grown, u.part)
			u.part = grown
		}
		u.part = append(u.part, p[:take]...)
		p, n = p[take:], n+take
	}
	return n, nil
}

// grow returns the new capacity of the buffer: small contents use little memory, large ones cause few copies.
func (u *upload) grow(need int) int {
	if need <= 256<<10 {
		return 256 << 10
	}
	return u.b.partSize
}

func (u *upload) options() minio.PutObjectOptions {
	return minio.PutObjectOptions{
		ContentType: "application/octet-stream", UserMetadata: map[string]string{marker: u.put}, ServerSideEncryption: u.b.sse,
		DisableContentSha256: true, // sum is sent instead, which needs no signed chunks
	}
}

// sum returns the SHA-256 of the collected bytes in hex. The server compares it with the received body.
func (u *upload) sum() string {
	sum := sha256.Sum256(u.part)
	return hex.EncodeToString(sum[:])
}

// send sends the collected bytes as a part.
func (u *upload) send() (err error) {
	if len(u.sent) == maxParts {
		return fmt.Errorf("the content is larger than %d parts of %d bytes: set a larger PartSize (part_size)", maxParts, u.b.partSize)
	}
	if u.id == "" {
		if u.id, err = u.b.api.NewMultipartUpload(u.ctx, u.b.name, u.object, u.options()); err != nil {
			return err
		}
	}
	n := len(u.sent) + 1
	part, err := u.b.api.PutObjectPart(u.ctx, u.b.name, u.object, u.id, n, bytes.NewReader(u.part), int64(len(u.part)), minio.PutObjectPartOptions{Sha256Hex: u.sum(), DisableContentSha256: true})
	if err != nil {
		return err
	}
	u.sent = append(u.sent, minio.CompletePart{PartNumber: n, ETag: part.ETag})
	u.part = u.part[:0]
	return nil
}

// end sends the rest and makes the object visible.
func (u *upload) end() error {
	if u.id != "" {
		if err := u.send(); err != nil {
			return err
		}
	}
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	u.ending = true
	if u.id == "" {
		_, err := u.b.api.PutObject(u.ctx, u.b.name, u.object, bytes.NewReader(u.part), int64(len(u.part)), "", u.sum(), u.options())
		return err
	}
	_, err := u.b.api.CompleteMultipartUpload(u.ctx, u.b.name, u.object, u.id, u.sent, minio.PutObjectOptions{})
	return err
}

// landed reports whether the object is that of this upload, although its last request failed.
func (u *upload) landed() bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), settleWithin)
	defer cancel()
	info, err := u.b.once.StatObject(ctx, u.b.name, u.object, minio.StatObjectOptions{})
	return err == nil && info.UserMetadata[marker] == u.put
}

// abort removes the parts. What it cannot remove remains until Sweep.
func (u *upload) abort() {
	if u.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), settleWithin)
	defer cancel()
	_ = u.b.api.AbortMultipartUpload(ctx, u.b.name, u.object, u.id)
}

// ctxReader reads until its context ends.
type ctxReader struct {
	ctx context.Context // of the Put
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
