package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// bucketCheckup is doctor's JSON output about the bucket.
type bucketCheckup struct {
	Folder  string `json:"folder"`          // or s3://BUCKET/PREFIX; "" with --bucket none: nothing was checked
	Error   string `json:"error,omitempty"` // why the S3 bucket cannot be used; nothing was checked
	Deep    bool   `json:"deep,omitempty"`  // all bytes were read and compared with their hashes
	Blobs   int    `json:"blobs"`           // blobs that values and artifacts refer to
	Bytes   int64  `json:"bytes"`           // of these blobs, before compression
	Bad     int    `json:"missing_or_damaged"`
	Sealed  int    `json:"sealed,omitempty"` // encrypted with keys that are not available: present, but not read
	Unknown int    `json:"files_without_row"`

	// The first of each.
	Problems     []blobProblem `json:"problems,omitempty"`
	UnknownFiles []string      `json:"files,omitempty"`
}

// blobProblem is an unreadable blob.
type blobProblem struct {
	ID   task.ID `json:"id"`
	Text string  `json:"text"`
}

// maxProblems is the maximum number of listed bucket problems.
const maxProblems = 100

// examineBucket compares the blob rows with their references and with the bucket, page by page. A collector may
// delete blobs meanwhile, so each mismatch is checked a second time.
func (f *checkup) examineBucket(ctx context.Context, s *session, client *weaver.Client, deep bool) error {
	r := client.Store()
	if !r.Capabilities().Has(store.CanListBlobs) {
		return nil
	}
	folder, err := s.bucketName()
	if err != nil {
		return err
	}
	bucket, err := s.bucket(false)
	if err != nil {
		return err
	}
	b := &bucketCheckup{Folder: folder, Deep: deep && bucket != nil}
	if s.remote != nil {
		if err := s.remote.Bucket.Check(); err != nil {
			b.Error, f.Bucket, f.Clean = err.Error(), b, false
			return nil
		}
	}
	err = eachBlob(ctx, client, func(u *store.BlobUse) error {
		f.add(f.At, store.CheckBlob(u))
		if u.State != task.BlobLive {
			return nil
		}
		b.Blobs, b.Bytes = b.Blobs+1, b.Bytes+u.Size
		if folder == "" {
			return nil
		}
		return b.look(ctx, client, r, u, deep)
	})
	if err == nil && bucket != nil {
		err = b.files(ctx, client, r, bucket)
	}
	if b.Blobs+b.Unknown > 0 || bucket != nil {
		f.Bucket = b
	}
	f.Clean = f.Clean && b.Bad == 0
	return err
}

// look records a blob whose bytes are missing or damaged.
func (b *bucketCheckup) look(ctx context.Context, client *weaver.Client, r store.Data, u *store.BlobUse, deep bool) error {
	err := readBlob(ctx, client, u.Blob, deep)
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, blob.ErrUnavailable):
		return err
	case errors.Is(err, codec.ErrNoCodec) || errors.Is(err, codec.ErrNoKey):
		b.Sealed++
		return nil
	}
	if now, rerr := store.BlobOf(ctx, r, client.Namespace(), u.ID); errors.Is(rerr, store.ErrNotFound) || rerr == nil && now.State != task.BlobLive {
		return nil // collected meanwhile
	} else if rerr != nil {
		return rerr
	}
	if b.Bad++; len(b.Problems) < maxProblems {
		b.Problems = append(b.Problems, blobProblem{u.ID, err.Error()})
	}
	return nil
}

// readBlob reads the beginning of a blob, which proves that it exists, or with deep all of it.
func readBlob(ctx context.Context, client *weaver.Client, of task.Blob, deep bool) error {
	r, err := openValue(ctx, client, of)
	if err != nil {
		return err
	}
	if deep {
		_, err = io.Copy(io.Discard, r)
	}
	return errors.Join(err, r.Close())
}

// files records files in the bucket without a row. A row is written before its bytes and deleted after them. So bytes
// without a row do not belong to a running upload.
func (b *bucketCheckup) files(ctx context.Context, client *weaver.Client, r store.Data, bucket blob.Bucket) error {
	ns := client.Namespace()
	var failed error
	err := bucket.List(ctx, path.Dir(blob.Key(ns, "0", "0"))+"/", func(i blob.Info) bool {
		unknown, err := unknownFile(ctx, r, bucket, ns, i.Key)
		if failed = err; unknown {
			if b.Unknown++; len(b.UnknownFiles) < maxProblems {
				b.UnknownFiles = append(b.UnknownFiles, i.Key)
			}
		}
		return failed == nil
	})
	return errors.Join(failed, err)
}

func unknownFile(ctx context.Context, r store.Data, bucket blob.Bucket, ns, key string) (bool, error) {
	name := key[strings.LastIndexByte(key, '-')+1:]
	id, err := task.ParseID(strings.ToUpper(name))
	if err != nil {
		return true, nil
	}
	u, err := store.BlobOf(ctx, r, ns, id)
	switch {
	case err == nil && blob.Key(ns, u.SHA256, id.String()) == key:
		return false, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return false, err
	}
	got, err := bucket.Get(ctx, key) // fails if the file was deleted meanwhile
	if err == nil {
		return true, got.Close()
	}
	return !errors.Is(err, blob.ErrNotFound), ctx.Err()
}

func (s *session) printBucket(b *bucketCheckup) {
	switch {
	case b == nil:
		return
	case b.Error != "":
		s.printf("%s: %s.\n", s.paint.Paint(text.Red, "The bucket cannot be used"), text.Printable(b.Error))
		return
	case b.Folder == "":
		s.printf("%s of the store were not looked for: --bucket none.\n", text.Plural(b.Blobs, "blob"))
		return
	case b.Bad > 0:
		s.printf("%s in the bucket %s:\n", s.paint.Paint(text.Red, fmt.Sprintf("%d of %s missing or damaged", b.Bad, text.Plural(b.Blobs, "blob"))), b.Folder)
		for _, p := range b.Problems {
			s.printf("%s\n", indent("  ", text.Printable(p.Text)))
		}
		s.printf("A task that reads one of them is blocked. Put the files back from a copy of the bucket, or name the right one with --bucket; `%s` starts such a task again.\n",
			s.command("task", "unblock", "ID"))
	case b.Deep && b.Sealed == 0:
		s.printf("Bucket %s: all bytes of %s (%s) are there and unchanged.\n", b.Folder, text.Plural(b.Blobs, "blob"), byteSize(b.Bytes))
	default:
		s.printf("Bucket %s: %s (%s) are there; --deep compares their bytes with their hashes.\n", b.Folder, text.Plural(b.Blobs, "blob"), byteSize(b.Bytes))
	}
	if b.Sealed > 0 {
		s.printf("Not read, because their key is not here (--codec-key): %s.\n", text.Plural(b.Sealed, "sealed blob"))
	}
	if b.Unknown > 0 {
		s.printf("Not in this store: %s of the bucket, left unchanged. Remove by hand the files that no other store uses:\n", text.Plural(b.Unknown, "file"))
		for _, key := range b.UnknownFiles {
			s.printf("  %s\n", text.Printable(key))
		}
	}
}
