package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/goweaver/weaver/blob"
)

// reader adds the key and a hint to the errors of a stream.
type reader struct {
	io.ReadCloser
	failure func(error) error
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.failure(err)
	}
	return n, err
}

var errUnreachable = fmt.Errorf("%w: the server cannot be reached: check the endpoint, the network and whether http or https is right", blob.ErrUnavailable)

// failure adds to an error what was done, where, and a hint.
func (b *Bucket) failure(ctx context.Context, verb, key string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = errors.Join(context.Cause(ctx), err)
	}
	where := verb + " in the bucket " + b.String() + " at " + b.endpoint
	if key != "" {
		where = "blob " + key + ": " + where
	}
	if hint := b.hint(key, err); hint != nil {
		return fmt.Errorf("%s: %w: %w", where, hint, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}

const permissions = "s3:ListBucket, s3:ListBucketMultipartUploads, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListMultipartUploadParts"

// hint returns the cause of a server's error and its remedy, or nil if the error is unknown.
func (b *Bucket) hint(key string, err error) error {
	var answer minio.ErrorResponse
	var network net.Error
	switch {
	case errors.As(err, &answer):
	case errors.Is(err, context.Canceled):
		return nil
	case errors.As(err, &network):
		return errUnreachable
	default:
		return nil
	}
	switch answer.Code {
	case minio.NoSuchKey:
		if key != "" {
			return blob.ErrNotFound
		}
	case minio.NoSuchBucket:
		return errors.New("there is no such bucket: create it, or correct its name, endpoint or region")
	case minio.AccessDenied, "AllAccessDisabled", "AccountProblem":
		return errors.New("the credentials have no permission: allow " + permissions)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return errors.New("the credentials are wrong: correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the credentials file")
	case "ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired":
		return errors.New("the credentials have expired: get new ones and start the program again")
	case "RequestTimeTooSkewed":
		return errors.New("the clock of this machine is wrong: set it")
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "InvalidRegion", "IllegalLocationConstraintException":
		return errors.New("the bucket is in another region: set the region")
	case "XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded":
		return blob.ErrFull
	}
	switch answer.StatusCode {
	case http.StatusInsufficientStorage:
		return blob.ErrFull
	case http.StatusForbidden:
		return errors.New("the credentials have no permission: allow " + permissions)
	}
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		return blob.ErrUnavailable
	}
	return nil
}
