// Package s3 keeps blobs in a bucket of Amazon S3 or of a server with its API, as objects in the format of blob.Encode.
//
// Open takes a URL, New a struct of options. Credentials come from the environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), from the credentials file of the AWS tools (AWS_PROFILE), or from the role
// of the machine, in this order.
package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/goweaver/weaver/blob"
)

// Bucket is a blob.Bucket in an S3 bucket, which several processes may use at once. Use New or Open.
type Bucket struct {
	name, prefix string
	endpoint     string
	codecs       []blob.Codec
	sse          encrypt.ServerSide
	partSize     int
	api          minio.Core
	once         *minio.Client // does not retry, for Check
	creds        *credentials.Credentials
	parts        chan []byte // buffers for reuse

	mu     sync.Mutex
	id     string    // last read identity
	idRead time.Time // when it was read
}

var (
	_ blob.Bucket     = (*Bucket)(nil)
	_ blob.Checker    = (*Bucket)(nil)
	_ blob.Sweeper    = (*Bucket)(nil)
	_ blob.Identified = (*Bucket)(nil)
)

const (
	maxTries     = 6 // of one request; the pauses between them end with the context
	checkWithin  = 10 * time.Second
	settleWithin = 10 * time.Second // to abort or to look at an upload whose context has ended
)

// New returns the Bucket of an S3 bucket. It sends no request; Check does.
func New(bucket string, o Options) (*Bucket, error) {
	if err := o.check(bucket); err != nil {
		return nil, err
	}
	b := &Bucket{
		name: bucket, prefix: o.Prefix, endpoint: o.Endpoint, codecs: o.Codecs,
		partSize: o.PartSize, creds: o.Credentials, parts: make(chan []byte, 4),
	}
	if b.endpoint == "" {
		b.endpoint = "s3.amazonaws.com"
	}
	if b.partSize == 0 {
		b.partSize = minPart
	}
	var err error
	if b.sse, err = o.encryption(); err != nil {
		return nil, err
	}
	if b.creds == nil {
		b.creds = credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}},
		})
	}
	mo := &minio.Options{Creds: b.creds, Secure: !o.Insecure, Region: o.Region, MaxRetries: maxTries, Transport: o.Transport}
	if o.PathStyle {
		mo.BucketLookup = minio.BucketLookupPath
	}
	client, err := minio.New(b.endpoint, mo)
	if err != nil {
		return nil, fmt.Errorf("the endpoint %q of the S3 bucket is not valid, want HOST or HOST:PORT: %w", b.endpoint, err)
	}
	b.api = minio.Core{Client: client}
	mo.MaxRetries = 1
	if b.once, err = minio.New(b.endpoint, mo); err != nil {
		return nil, err
	}
	return b, nil
}

// Codecs returns the codecs of the bucket; see blob.CodecsOf.
func (b *Bucket) Codecs() []blob.Codec { return b.codecs }

// String returns the URL of the bucket without its options.
func (b *Bucket) String() string { return "s3://" + b.name + "/" + b.prefix }

// object returns the name of a key's object.
func (b *Bucket) object(key string) string {
	if b.prefix == "" {
		return key
	}
	return b.prefix + "/" + key
}

// Check implements blob.Checker: it lists one key, within 10 seconds.
func (b *Bucket) Check() error {
	if b == nil {
		return errors.New("the *s3.Bucket is nil: make one with s3.New")
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkWithin)
	defer cancel()
	return b.Ping(ctx)
}

// Ping is Check with a context.
func (b *Bucket) Ping(ctx context.Context) error {
	v, err := b.creds.GetWithContext(b.once.CredContext())
	if err != nil || v.SignerType.IsAnonymous() {
		return errors.New("no credentials for the S3 bucket were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write them to ~/.aws/credentials, or give the machine a role")
	}
	for o := range b.once.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.object(""), Recursive: true, MaxKeys: 1}) {
		return b.failure(ctx, "check", "", o.Err)
	}
	return nil
}

// marker is the metadata that identifies one Put.
const marker = "Weaver-Put"

// Put implements blob.Bucket. Content that fits into a part is one request, other content a multipart upload, which
// becomes visible as a whole.
func (b *Bucket) Put(ctx context.Context, key string, r io.Reader) error {
	if err := blob.CheckKey(key); err != nil {
		return err
	}
	u := &upload{ctx: ctx, b: b, object: b.object(key), part: b.buffer(), put: rand.Text()}
	err := blob.Encode(u, &ctxReader{ctx, r}, b.codecs...)
	if err == nil {
		err = u.end()
	}
	if err != nil && u.ending && u.landed() {
		err = nil // the answer was lost, not the bytes
	}
	if err != nil {
		u.abort()
	}
	b.release(u.part)
	return b.failure(ctx, "put", key, err)
}

// Get implements blob.Bucket.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := blob.CheckKey(key); err != nil {
		return nil, err
	}
	body, _, _, err := b.api.GetObject(ctx, b.name, b.object(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.failure(ctx, "get", key, err)
	}
	r, err := blob.Decode(blob.ReadStored(ctx, body), b.codecs...)
	if err != nil {
		return nil, b.failure(ctx, "get", key, err)
	}
	return &reader{r, func(err error) error { return b.failure(ctx, "read", key, err) }}, nil
}

// Delete implements blob.Bucket.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	if err := blob.CheckKey(key); err != nil {
		return err
	}
	err := b.api.RemoveObject(ctx, b.name, b.object(key), minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		err = nil
	}
	return b.failure(ctx, "delete", key, err)
}

// List implements blob.Bucket. Objects whose names are not keys belong to others and are left out.
func (b *Bucket) List(ctx context.Context, prefix string, each func(blob.Info) bool) error {
	for o := range b.api.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.object(prefix), Recursive: true}) {
		if o.Err != nil {
			return b.failure(ctx, "list", "", o.Err)
		}
		if key, ok := b.key(o.Key); ok && !each(blob.Info{Key: key, Stored: o.Size, Modified: o.LastModified}) {
			return nil
		}
	}
	return nil
}

// key returns the key of an object.
func (b *Bucket) key(object string) (string, bool) {
	key, ok := strings.CutPrefix(object, b.object(""))
	return key, ok && blob.CheckKey(key) == nil
}

// weaverKey matches the keys that blob.Key returns.
var weaverKey = regexp.MustCompile(`^[^/]+/(sealed-)?[0-9a-f]{64}-[0-9a-z]{26}$`)

// leastAge is the least age of the uploads that Sweep aborts in a bucket without a prefix.
const leastAge = 24 * time.Hour

// Sweep implements blob.Sweeper: it aborts multipart uploads of keys below the prefix that got no part for the given
// time. Other programs may use a bucket without a prefix, so there it only aborts those of keys that blob.Key returns,
// after at least a day.
func (b *Bucket) Sweep(ctx context.Context, unchanged time.Duration) (removed int, err error) {
	ours := func(object string) (key string, ok bool) {
		key, ok = b.key(object)
		return key, ok && (b.prefix != "" || weaverKey.MatchString(key))
	}
	if b.prefix == "" {
		unchanged = max(unchanged, leastAge)
	}
	for u := range b.api.ListIncompleteUploads(ctx, b.name, b.object(""), true) {
		if u.Err != nil {
			return removed, b.failure(ctx, "sweep", "", u.Err)
		}
		key, ok := ours(u.Key)
		if !ok || time.Since(u.Initiated) < unchanged {
			continue
		}
		last, err := b.lastPart(ctx, u)
		if err == nil && time.Since(last) >= unchanged {
			err = b.api.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID)
			if err == nil {
				removed++
			}
		}
		if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
			return removed, b.failure(ctx, "sweep", key, err)
		}
	}
	return removed, nil
}

// lastPart returns when an upload got its newest part.
func (b *Bucket) lastPart(ctx context.Context, u minio.ObjectMultipartInfo) (time.Time, error) {
	last := u.Initiated
	for after := 0; ; {
		page, err := b.api.ListObjectParts(ctx, b.name, u.Key, u.UploadID, after, 1000)
		if err != nil {
			return last, err
		}
		for _, p := range page.ObjectParts {
			if p.LastModified.After(last) {
				last = p.LastModified
			}
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= after {
			return last, nil
		}
		after = page.NextPartNumberMarker
	}
}

func (b *Bucket) buffer() []byte {
	select {
	case p := <-b.parts:
		return p
	default:
		return make([]byte, 0, 64<<10)
	}
}

func (b *Bucket) release(p []byte) {
	select {
	case b.parts <- p[:0]:
	default:
	}
}
