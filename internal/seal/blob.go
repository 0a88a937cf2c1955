package seal

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/task"
)

// The stored form of a sealed blob, which a bucket stores like other bytes, is
//
//	"WVSEAL1\n"
//	last (1 byte), n (1 byte), the ID of the key (n bytes), size (4 bytes), sealed bytes
//	… the same again, until last is 1
//
// The opened pieces form the put bytes in the form of blob.Encode, compressed before sealing
// if the bucket's codecs do so. Each piece is bound to the name of the blob, its number and
// last, so that pieces cannot be omitted, moved or added. A piece has 64 KiB before it is
// sealed; a reader or writer holds a few of them.
const (
	blobMagic   = "WVSEAL1\n"
	pieceSize   = 64 << 10
	maxPiece    = 2*pieceSize + 64<<10 // size limit of a sealed piece
	blobSealed  = "sealed-"
	endsTooSoon = "they end too soon"
)

// IsBlob reports whether a blob is sealed.
func IsBlob(b task.Blob) bool { return strings.HasPrefix(b.SHA256, blobSealed) }

// Hash returns the hash in a blob's name: of its bytes or, if they are sealed, the one from
// BlobName.
func Hash(b task.Blob) string { return strings.TrimPrefix(b.SHA256, blobSealed) }

// BlobName returns the name of a sealed blob, in place of the hash of its bytes: a keyed hash,
// which cannot be compared with bytes without the key. Equal bytes have the same name while
// the key is the newest, so they are stored once.
func (s *Sealer) BlobName(sum string) (string, error) {
	sealed, err := s.Codec.Seal([]byte(sum), []byte("weaver blob name v1\x00"+s.Namespace))
	if err != nil {
		return "", fmt.Errorf("seal a blob: %w", err)
	}
	name := sha256.Sum256(sealed.Bytes)
	return blobSealed + hex.EncodeToString(name[:]), nil
}

// piece returns the data to which a piece of a blob is bound.
func (s *Sealer) piece(b task.Blob, n int, last bool) []byte {
	return fmt.Appendf(nil, "weaver blob v1\x00%s\x00%s\x00%d\x00%t", s.Namespace, b.SHA256, n, last)
}

// PutBlob seals the bytes of plain and puts them.
func (s *Sealer) PutBlob(ctx context.Context, bucket blob.Bucket, key string, b task.Blob, plain io.Reader) error {
	r, w := io.Pipe()
	encoding := group.New(ctx)
	encoding.Go("encode a blob", func(context.Context) error {
		err := blob.Encode(w, plain, blob.CodecsOf(bucket)...)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("what is put ended with an error: " + err.Error()) // a read error must not look like the end
		}
		return w.CloseWithError(err) // nil means the end
	})
	err := bucket.Put(ctx, key, &sealing{s: s, b: b, in: r})
	return errors.Join(err, r.CloseWithError(io.ErrClosedPipe), encoding.Wait())
}

// sealing seals a stream piece by piece.
type sealing struct {
	s    *Sealer
	b    task.Blob
	in   io.Reader
	now  []byte // the piece to seal
	next []byte // the piece after it; empty if now is the last
	n    int    // number of pieces
	out  []byte
	err  error
}

// Read implements io.Reader.
func (r *sealing) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.err = r.fill()
	}
	if len(r.out) == 0 {
		return 0, r.err
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// fill seals the next piece. It returns io.EOF at the end.
func (r *sealing) fill() (err error) {
	if r.n == 0 {
		r.now, r.next = make([]byte, 0, pieceSize), make([]byte, 0, pieceSize)
		r.out = append(r.out, blobMagic...)
		if r.next, err = r.read(r.next); err != nil {
			return err
		}
	}
	r.now, r.next = r.next, r.now
	if r.next, err = r.read(r.next); err != nil {
		return err
	}
	last := len(r.next) == 0
	sealed, err := r.s.Codec.Seal(r.now, r.s.piece(r.b, r.n, last))
	if err == nil {
		err = codec.CheckKeyID(sealed.Key)
	}
	if err == nil && len(sealed.Bytes) > maxPiece {
		err = fmt.Errorf("the codec made %d bytes of %d: at most %d are allowed", len(sealed.Bytes), len(r.now), maxPiece)
	}
	if err != nil {
		return fmt.Errorf("seal blob %v: %w", r.b.ID, err)
	}
	end := byte(0)
	if last {
		end = 1
	}
	r.out = append(r.out, end, byte(len(sealed.Key)))
	r.out = append(r.out, sealed.Key...)
	r.out = binary.BigEndian.AppendUint32(r.out, uint32(len(sealed.Bytes))) // at most maxPiece
	r.out = append(r.out, sealed.Bytes...)
	r.n++
	if last {
		return io.EOF
	}
	return nil
}

// read reads the next piece; it is empty at the end.
func (r *sealing) read(into []byte) ([]byte, error) {
	n, err := io.ReadFull(r.in, into[:pieceSize])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return into[:n], err
}

// OpenBlob returns the opened bytes of a sealed blob. It closes stored. If s is nil the error
// contains the ID of the missing key.
func (s *Sealer) OpenBlob(ctx context.Context, bucket blob.Bucket, b task.Blob, stored io.ReadCloser) (io.ReadCloser, error) {
	r := &opening{s: s, b: b, in: bufio.NewReader(stored), stored: stored}
	if r.fill(); r.err != nil && !errors.Is(r.err, io.EOF) {
		return nil, errors.Join(r.err, stored.Close())
	}
	return blob.Decode(blob.ReadStored(ctx, r), blob.CodecsOf(bucket)...)
}

// KeyOf returns the ID of the key of a stored blob's first piece.
func KeyOf(stored io.Reader) (string, error) {
	r := &opening{in: bufio.NewReader(stored)}
	_, key, _, err := r.head()
	return key, err
}

// opening opens a stream piece by piece.
type opening struct {
	s      *Sealer
	b      task.Blob
	in     *bufio.Reader
	stored io.Closer
	n      int
	out    []byte
	err    error
}

// Read implements io.Reader.
func (r *opening) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.fill()
	}
	if len(r.out) == 0 {
		return 0, r.err
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *opening) Close() error { return r.stored.Close() }

// fill opens the next piece.
func (r *opening) fill() {
	if err := r.open(); err != nil && !errors.Is(err, io.EOF) {
		r.out, r.err = nil, fmt.Errorf("blob %v: %w", r.b.ID, err)
	} else {
		r.err = err
	}
}

func (r *opening) open() error {
	last, key, size, err := r.head()
	if err != nil {
		return err
	}
	if r.s == nil {
		return fmt.Errorf("sealed with the key %q, %d bytes: %w", key, r.b.Size, codec.ErrNoCodec)
	}
	sealed := codec.Sealed{Key: key, Bytes: make([]byte, size)}
	if _, err := io.ReadFull(r.in, sealed.Bytes); err != nil {
		return damaged(err)
	}
	if r.out, err = r.s.Codec.Open(sealed, r.s.piece(r.b, r.n, last)); err != nil {
		return fmt.Errorf("sealed with the key %q: %w", key, err)
	}
	r.n++
	if !last {
		return nil
	}
	if _, err := r.in.ReadByte(); err == nil {
		return fmt.Errorf("%w: something follows their end", blob.ErrCorrupt)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return io.EOF
}

// head reads the header of a piece.
func (r *opening) head() (last bool, key string, size uint32, err error) {
	if r.n == 0 {
		magic := make([]byte, len(blobMagic))
		if _, err := io.ReadFull(r.in, magic); err != nil {
			return false, "", 0, damaged(err)
		}
		if string(magic) != blobMagic {
			return false, "", 0, fmt.Errorf("%w: they are not in the form of a sealed blob", blob.ErrCorrupt)
		}
	}
	var fixed [4]byte
	if _, err := io.ReadFull(r.in, fixed[:2]); err != nil {
		return false, "", 0, damaged(err)
	}
	id := make([]byte, fixed[1])
	if _, err := io.ReadFull(r.in, id); err != nil {
		return false, "", 0, damaged(err)
	}
	last = fixed[0] == 1
	if fixed[0] > 1 || codec.CheckKeyID(string(id)) != nil {
		return false, "", 0, fmt.Errorf("%w: a piece has no head", blob.ErrCorrupt)
	}
	if _, err := io.ReadFull(r.in, fixed[:]); err != nil {
		return false, "", 0, damaged(err)
	}
	if size = binary.BigEndian.Uint32(fixed[:]); size > maxPiece {
		return false, "", 0, fmt.Errorf("%w: a piece of %d bytes", blob.ErrCorrupt, size)
	}
	return last, string(id), size, nil
}

// damaged converts an unexpected end to blob.ErrCorrupt.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s", blob.ErrCorrupt, endsTooSoon)
	}
	return err
}
