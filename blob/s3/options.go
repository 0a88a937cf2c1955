package s3

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/goweaver/weaver/blob"
)

// Options of a Bucket. The zero value is Amazon S3 over TLS.
type Options struct {
	Endpoint    string                   // HOST or HOST:PORT of the server, "" for Amazon S3
	Insecure    bool                     // connect without TLS
	Region      string                   // "" asks the server
	Prefix      string                   // begins the names of all objects, before a slash: a valid key or ""
	PathStyle   bool                     // the bucket is in the path of the URL and not in the name of the host
	SSE         string                   // server-side encryption: "", "AES256", or "aws:kms:KEY"
	PartSize    int                      // bytes of a part of a multipart upload, which a Put holds in memory; 0 is 5 MiB
	Credentials *credentials.Credentials // nil: those of the environment, a file or the machine
	Transport   http.RoundTripper        // nil: minio.DefaultTransport
	Codecs      []blob.Codec
}

const (
	minPart = 5 << 20 // the least that S3 takes
	maxPart = 1 << 30
)

const kms = "aws:kms:"

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (o *Options) check(bucket string) error {
	switch {
	case bucket == "":
		return errors.New("the S3 bucket has no name: write s3://BUCKET")
	case !bucketName.MatchString(bucket):
		return fmt.Errorf("%.80q is not the name of an S3 bucket: want 3 to 63 of a to z, 0 to 9, '-' and '.'", bucket)
	case o.Prefix != "" && blob.CheckKey(o.Prefix) != nil:
		return fmt.Errorf("the prefix %.80q of the S3 bucket is not valid: only a to z, 0 to 9, '-', '_' and '.' may stand between single slashes", o.Prefix)
	case o.PartSize != 0 && (o.PartSize < minPart || o.PartSize > maxPart):
		return fmt.Errorf("parts of %d bytes: want %d (5 MiB) to %d (1 GiB)", o.PartSize, minPart, maxPart)
	}
	for i, c := range o.Codecs {
		if c == nil {
			return fmt.Errorf("codec %d of the bucket is nil: leave it out", i)
		}
	}
	return nil
}

func (o *Options) encryption() (encrypt.ServerSide, error) {
	key, isKMS := strings.CutPrefix(o.SSE, kms)
	switch {
	case o.SSE == "":
		return nil, nil
	case o.SSE == "AES256":
		return encrypt.NewSSE(), nil
	case isKMS && key != "":
		return encrypt.NewSSEKMS(key, nil)
	}
	return nil, fmt.Errorf("unknown server-side encryption %.40q: want AES256 or aws:kms:KEY", o.SSE)
}

// Open returns the Bucket of a URL; see Parse.
func Open(rawURL string, codecs ...blob.Codec) (*Bucket, error) {
	bucket, o, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	o.Codecs = codecs
	return New(bucket, o)
}

// Parse reads a URL of the form
//
//	s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION&path_style=true&sse=AES256&part_size=BYTES
//
// in which everything after BUCKET is optional. The endpoint is https unless its URL begins with http://. The URL has no
// credentials.
func Parse(rawURL string) (bucket string, o Options, err error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "s3" || u.Opaque != "" {
		return "", o, errors.New("not a URL of an S3 bucket: write s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION")
	}
	if u.User != nil {
		return "", o, errors.New("the URL of an S3 bucket takes no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", o, errors.New("the parameters of the URL of the S3 bucket are not valid: write NAME=VALUE, with & between them")
	}
	o.Prefix = strings.Trim(u.Path, "/")
	for name, all := range values {
		if len(all) > 1 {
			return "", o, fmt.Errorf("the URL of the S3 bucket has the parameter %.40q more than once", name)
		}
		if err := o.set(name, all[0]); err != nil {
			return "", o, err
		}
	}
	if err := o.check(u.Host); err != nil {
		return "", o, err
	}
	_, err = o.encryption()
	return u.Host, o, err
}

func (o *Options) set(name, value string) (err error) {
	switch name {
	case "endpoint":
		host, plain := strings.CutPrefix(value, "http://")
		host = strings.TrimSuffix(strings.TrimPrefix(host, "https://"), "/")
		if host == "" || strings.ContainsAny(host, "/@?# ") {
			return errors.New("the endpoint of the S3 bucket is not valid: write endpoint=https://HOST:PORT, or http:// for one without TLS")
		}
		o.Endpoint, o.Insecure = host, plain
	case "region":
		o.Region = value
	case "path_style":
		if o.PathStyle, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("path_style=%.40q of the S3 bucket: want true or false", value)
		}
	case "sse":
		o.SSE = value
	case "part_size":
		if o.PartSize, err = strconv.Atoi(value); err != nil {
			return fmt.Errorf("part_size=%.40q of the S3 bucket: want a number of bytes", value)
		}
	default:
		return fmt.Errorf("the URL of the S3 bucket has the unknown parameter %.40q: known are endpoint, region, path_style, sse and part_size", name)
	}
	return nil
}
