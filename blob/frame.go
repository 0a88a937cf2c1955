package blob

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Codec transforms bytes on their way into a bucket and back, for example by compression.
type Codec interface {
	// Name is stored with the bytes: 1 to 255 bytes, never changed.
	Name() string
	// Wants reports whether bytes should go through the codec. head holds their first 64 KiB, or all of them if there
	// are fewer.
	Wants(head []byte) bool
	// Writer returns a stream that writes transformed bytes to w. Close ends the output and leaves w open.
	Writer(w io.Writer) (io.WriteCloser, error)
	// Reader is the inverse of Writer. Invalid bytes are an error of Read.
	Reader(r io.Reader) (io.ReadCloser, error)
}

// checkCodecs returns an error for codecs that no bucket can use.
func checkCodecs(codecs []Codec) error {
	seen := make(map[string]bool, len(codecs))
	for i, c := range codecs {
		switch {
		case c == nil:
			return fmt.Errorf("codec %d of the bucket is nil: leave it out", i)
		case c.Name() == "" || len(c.Name()) > 255:
			return fmt.Errorf("codec %d of the bucket has a name of %d bytes: want 1 to 255", i, len(c.Name()))
		case seen[c.Name()]:
			return fmt.Errorf("two codecs of the bucket are named %q: give each once", c.Name())
		}
		seen[c.Name()] = true
	}
	return nil
}

// The stored form is
//
//	"WVBLOB1\n"              format and version
//	n, n × (length, name)    the codecs of the rest, first to last
//	the bytes, then their SHA-256
//
// The checksum goes through the codecs too, so that a codec that encrypts hides it.
const (
	magic    = "WVBLOB1\n"
	headSize = 64 << 10
)

// Encode writes the content of r to w in the stored form, through the codecs that want it.
func Encode(w io.Writer, r io.Reader, codecs ...Codec) error {
	head := make([]byte, headSize)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	head = head[:n]
	var used []Codec
	for _, c := range codecs {
		if c.Wants(head) {
			used = append(used, c)
		}
	}
	header := append([]byte(magic), byte(len(used)))
	for _, c := range used {
		header = append(append(header, byte(len(c.Name()))), c.Name()...)
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	// The first codec is the outermost writer: it gets the bytes first.
	out, open := w, []io.WriteCloser(nil)
	for _, c := range slices.Backward(used) {
		cw, err := c.Writer(out)
		if err != nil {
			return fmt.Errorf("codec %s: %w", c.Name(), err)
		}
		out, open = cw, append(open, cw)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), io.MultiReader(bytes.NewReader(head), r))
	if err == nil {
		_, err = out.Write(sum.Sum(nil))
	}
	for _, cw := range slices.Backward(open) {
		if cerr := cw.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// Decode returns the original bytes of the stored form. Its final Read returns ErrCorrupt if the bytes have changed.
// Close also closes stored. Errors: ErrCorrupt, ErrCodec.
func Decode(stored io.ReadCloser, codecs ...Codec) (io.ReadCloser, error) {
	d := &decoder{sum: sha256.New(), open: []io.Closer{stored}}
	in := bufio.NewReaderSize(stored, headSize)
	names, err := readHeader(in)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.in = in
	for _, name := range slices.Backward(names) {
		i := slices.IndexFunc(codecs, func(c Codec) bool { return c.Name() == name })
		if i < 0 {
			err := fmt.Errorf("%w: the bytes went through %q: open the bucket with that codec", ErrCodec, name)
			return nil, errors.Join(err, d.Close())
		}
		cr, err := codecs[i].Reader(d.in)
		if err != nil {
			return nil, errors.Join(corrupt(err), d.Close())
		}
		d.in, d.open = cr, append(d.open, cr)
	}
	return d, nil
}

func readHeader(in *bufio.Reader) ([]string, error) {
	start := make([]byte, len(magic)+1)
	if _, err := io.ReadFull(in, start); err != nil {
		return nil, corrupt(err)
	}
	if string(start[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: they are not in the form of a blob", ErrCorrupt)
	}
	names := make([]string, start[len(magic)])
	for i := range names {
		n, err := in.ReadByte()
		if err != nil {
			return nil, corrupt(err)
		}
		name := make([]byte, n)
		if _, err := io.ReadFull(in, name); err != nil {
			return nil, corrupt(err)
		}
		names[i] = string(name)
	}
	return names, nil
}

// corrupt converts a reader's error about truncated bytes, or bytes that a codec rejects, to ErrCorrupt.
func corrupt(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: they end too soon", ErrCorrupt)
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// decoder returns the bytes before the checksum, which it holds back.
type decoder struct {
	in   io.Reader
	sum  hash.Hash
	held []byte // read but not returned: its end may be the checksum
	buf  [headSize]byte
	err  error // error at the end
	open []io.Closer
}

func (d *decoder) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(d.held) <= sha256.Size && d.err == nil {
		d.fill()
	}
	if n := copy(p, d.held[:max(0, len(d.held)-sha256.Size)]); n > 0 {
		d.sum.Write(p[:n])
		d.held = d.held[n:]
		return n, nil
	}
	if d.err == nil || !errors.Is(d.err, io.EOF) || bytes.Equal(d.sum.Sum(nil), d.held) {
		return 0, d.err
	}
	d.err = fmt.Errorf("%w: their checksum differs", ErrCorrupt)
	return 0, d.err
}

// fill reads more bytes.
func (d *decoder) fill() {
	kept := copy(d.buf[:], d.held)
	n, err := d.in.Read(d.buf[kept:])
	d.held = d.buf[:kept+n]
	var stored *storedError
	switch {
	case err == nil:
	case errors.As(err, &stored):
		d.err = stored.err
	case !errors.Is(err, io.EOF):
		d.err = corrupt(err)
	case len(d.held) < sha256.Size:
		d.err = corrupt(err)
	default:
		d.err = io.EOF
	}
}

// Close implements io.Closer.
func (d *decoder) Close() error {
	var errs []error
	for _, c := range slices.Backward(d.open) {
		errs = append(errs, c.Close())
	}
	d.open = nil
	if d.err == nil {
		d.err = errors.New("read of a closed blob")
	}
	return errors.Join(errs...)
}

// CodecsOf returns the codecs of a Bucket that has a method Codecs. A caller that encrypts bytes before it puts them
// applies these codecs first, because they are useless on encrypted bytes.
func CodecsOf(b Bucket) []Codec {
	if has, ok := b.(interface{ Codecs() []Codec }); ok {
		return has.Codecs()
	}
	return nil
}
