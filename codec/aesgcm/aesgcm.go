// Package aesgcm is a codec.Codec with AES-256-GCM and keys of 32 random bytes.
//
// The last key seals, and all keys open. To change the key, append a new one to the keys of every program, restart
// the programs, and let `weaver codec rewrap` reseal values of the old key. Then remove the old key. (If the programs
// cannot be restarted at once, first give all of them the new key before the old one, so that each can open values
// sealed by the others.)
//
// The same bytes at the same place give the same output, because stores compare values. The nonce is therefore not
// random: HMAC-SHA-256 of the place and the bytes, under a key derived from the given one, yields 24 bytes. A message
// key is derived from these 24 bytes, so that neither the number of messages nor the number of their bytes approaches
// a limit of GCM. Two messages with the same 24 bytes are the same message, except with a probability of 2^-96 after
// 2^48 messages.
package aesgcm

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/plainfile"
)

// KeySize is the length of a key, in bytes.
const KeySize = 32

// Key is a key with its ID, which is stored with sealed bytes.
type Key struct {
	ID     string
	Secret []byte // KeySize random bytes
}

// NewKey returns a random key.
func NewKey(id string) (Key, error) {
	k := Key{ID: id, Secret: make([]byte, KeySize)}
	if _, err := rand.Read(k.Secret); err != nil {
		return Key{}, err
	}
	return k, codec.CheckKeyID(id)
}

// String returns the line of a key file. It contains the secret in plain text.
func (k Key) String() string { return k.ID + " " + base64.StdEncoding.EncodeToString(k.Secret) }

// Codec seals with the last of its keys and opens with all. Use New or Open.
type Codec struct {
	keys   map[string]*derived
	newest string
}

var _ codec.Codec = (*Codec)(nil)

// derived holds the keys derived from a Key.
type derived struct{ nonce, message mac }

// mac is HMAC-SHA-256 with a key. The hash state after the key is computed once.
type mac struct{ ready *sync.Pool }

func newMAC(key []byte) mac {
	return mac{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (m mac) sum(parts ...[]byte) (sum [sha256.Size]byte) {
	h := m.ready.Get().(hash.Hash)
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	m.ready.Put(h)
	return sum
}

// New returns a codec with keys; the last one is the newest.
func New(keys ...Key) (*Codec, error) {
	c := &Codec{keys: make(map[string]*derived, len(keys))}
	if len(keys) == 0 {
		return nil, errors.New("aesgcm: no key is given: make one with NewKey or `weaver codec key`")
	}
	for _, k := range keys {
		if err := codec.CheckKeyID(k.ID); err != nil {
			return nil, fmt.Errorf("aesgcm: key %.70q: %w", k.ID, err)
		}
		if len(k.Secret) != KeySize {
			return nil, fmt.Errorf("aesgcm: key %q has %d bytes: want %d random ones", k.ID, len(k.Secret), KeySize)
		}
		if c.keys[k.ID] != nil {
			return nil, fmt.Errorf("aesgcm: key %q is given twice: give each key its own ID", k.ID)
		}
		d := new(derived)
		for info, to := range map[string]*mac{"weaver aesgcm nonce v1": &d.nonce, "weaver aesgcm message v1": &d.message} {
			key, err := hkdf.Key(sha256.New, k.Secret, nil, info, KeySize)
			if err != nil {
				return nil, fmt.Errorf("aesgcm: key %q: %w", k.ID, err)
			}
			*to = newMAC(key)
		}
		c.keys[k.ID], c.newest = d, k.ID
	}
	return c, nil
}

// Open reads the keys of a file; see Read.
func Open(path string) (*Codec, error) {
	f, err := plainfile.OpenStream(path)
	if err != nil {
		return nil, err
	}
	c, err := Read(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Read reads keys, one per line: its ID, a space, and its 32 bytes in base64. Empty lines and lines that begin with #
// are ignored. The last key is the newest.
func Read(r io.Reader) (*Codec, error) {
	var keys []Key
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		// Messages omit the content of the line: it may be a secret.
		parts := strings.Fields(line)
		if len(parts) != 2 {
			return nil, fmt.Errorf("line %d: want the ID of a key, a space, and 32 bytes in base64, as `weaver codec key` prints them", n)
		}
		secret, err := base64.StdEncoding.DecodeString(parts[1])
		if err != nil || len(secret) != KeySize {
			return nil, fmt.Errorf("line %d: the text after the ID is not %d bytes in base64: make a key with `weaver codec key`", n, KeySize)
		}
		if err := codec.CheckKeyID(parts[0]); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, Key{ID: parts[0], Secret: secret})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return New(keys...)
}

// Newest implements codec.Codec.
func (c *Codec) Newest() string { return c.newest }

// nonceSize is the number of bytes before the ciphertext.
const nonceSize = 24

// Seal implements codec.Codec.
func (c *Codec) Seal(plain, place []byte) (codec.Sealed, error) {
	d := c.keys[c.newest]
	nonce := d.nonceOf(plain, place)
	gcm, err := d.gcm(nonce)
	if err != nil {
		return codec.Sealed{}, err
	}
	sealed := make([]byte, nonceSize, nonceSize+len(plain)+gcm.Overhead())
	copy(sealed, nonce)
	return codec.Sealed{Key: c.newest, Bytes: gcm.Seal(sealed, nonce[:gcm.NonceSize()], plain, place)}, nil
}

// Open implements codec.Codec.
func (c *Codec) Open(s codec.Sealed, place []byte) ([]byte, error) {
	d := c.keys[s.Key]
	if d == nil {
		return nil, codec.ErrNoKey
	}
	if len(s.Bytes) < nonceSize {
		return nil, codec.ErrChanged
	}
	gcm, err := d.gcm(s.Bytes[:nonceSize])
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, s.Bytes[:gcm.NonceSize()], s.Bytes[nonceSize:], place)
	if err != nil {
		return nil, codec.ErrChanged
	}
	return plain, nil
}

// nonceOf returns the 24 bytes of a message.
func (d *derived) nonceOf(plain, place []byte) []byte {
	// The length comes first, so that different messages never have the same input.
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(place)))
	sum := d.nonce.sum(size[:], place, plain)
	return sum[:nonceSize]
}

// gcm returns the cipher of a message.
func (d *derived) gcm(nonce []byte) (cipher.AEAD, error) {
	key := d.message.sum(nonce)
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
