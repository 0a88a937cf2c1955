package s3

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// identityObject is the name of the object with the ID, below the prefix. It is not a key.
const identityObject = ".bucket-id"

// knownFor is the time for which a Bucket caches the ID that it read.
const knownFor = time.Minute

// Identity implements blob.Identified: the ID is in the object .bucket-id below the prefix, and is copied with the
// other objects.
func (b *Bucket) Identity(ctx context.Context, create bool) (id, place string, err error) {
	place = b.String() + " at " + b.endpoint
	b.mu.Lock()
	id, fresh := b.id, time.Since(b.idRead) < knownFor
	b.mu.Unlock()
	if id != "" && fresh {
		return id, place, nil
	}
	limited, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	client := b.once // a check, or a collector, which tries again later
	if create {
		client = b.api.Client
	}
	if id, err = b.readIdentity(limited, client); id == "" && err == nil && create {
		if err = b.makeIdentity(limited); err == nil {
			id, err = b.readIdentity(limited, client) // of the first process
		}
	}
	if err != nil {
		return "", place, b.failure(ctx, "read the ID", "", err)
	}
	b.mu.Lock()
	b.id, b.idRead = id, time.Now()
	b.mu.Unlock()
	return id, place, nil
}

// readIdentity reads the ID, or returns "" if there is none.
func (b *Bucket) readIdentity(ctx context.Context, client *minio.Client) (string, error) {
	body, _, _, err := (&minio.Core{Client: client}).GetObject(ctx, b.name, b.object(identityObject), minio.GetObjectOptions{})
	if err != nil {
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return "", nil
		}
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(body, 100))
	if err = errors.Join(err, body.Close()); err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if len(id) < 16 || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the object %s should hold the ID of the bucket, and is damaged: restore it from a backup, or delete it and accept the bucket anew", b.object(identityObject))
	}
	return id, nil
}

// makeIdentity writes an ID unless another process was faster. On a server that ignores or refuses the condition, two
// first processes can write one each; the store then refuses the bucket of one of them.
func (b *Bucket) makeIdentity(ctx context.Context) error {
	text := rand.Text() + "\n"
	sum := sha256.Sum256([]byte(text))
	put := func(o minio.PutObjectOptions) error {
		o.ContentType, o.ServerSideEncryption, o.DisableContentSha256 = "text/plain", b.sse, true
		_, err := b.api.PutObject(ctx, b.name, b.object(identityObject), strings.NewReader(text), int64(len(text)), "", hex.EncodeToString(sum[:]), o)
		return err
	}
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*") // only if there is none
	err := put(o)
	switch minio.ToErrorResponse(err).StatusCode {
	case http.StatusPreconditionFailed, http.StatusConflict:
		return nil
	case http.StatusNotImplemented:
		return put(minio.PutObjectOptions{})
	}
	return err
}
