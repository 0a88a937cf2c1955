package aesgcm_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/codec/aesgcm"
)

func newCodec(t *testing.T, keys ...aesgcm.Key) *aesgcm.Codec {
	t.Helper()
	c, err := aesgcm.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newKey(t *testing.T, id string) aesgcm.Key {
	t.Helper()
	k, err := aesgcm.NewKey(id)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	c := newCodec(t, newKey(t, "k1"))
	place := []byte("here")
	for _, plain := range [][]byte{nil, []byte("a"), bytes.Repeat([]byte("secret"), 20_000)} {
		s, err := c.Seal(plain, place)
		if err != nil || s.Key != "k1" {
			t.Fatalf("Seal = key %q, %v", s.Key, err)
		}
		if bytes.Contains(s.Bytes, []byte("secret")) {
			t.Error("the sealed bytes have the secret")
		}
		again, err := c.Seal(plain, place)
		if err != nil || !bytes.Equal(again.Bytes, s.Bytes) {
			t.Errorf("the same bytes and place were sealed to another result (%v)", err)
		}
		there, err := c.Seal(plain, []byte("there"))
		if err != nil || bytes.Equal(there.Bytes[24:], s.Bytes[24:]) {
			t.Errorf("another place was sealed to the same result (%v)", err)
		}
		if got, err := c.Open(s, place); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("Open = %d bytes, %v; want %d", len(got), err, len(plain))
		}
		if _, err := c.Open(s, []byte("there")); !errors.Is(err, codec.ErrChanged) {
			t.Errorf("Open at another place = %v, want ErrChanged", err)
		}
	}
}

func TestTampered(t *testing.T) {
	t.Parallel()
	c := newCodec(t, newKey(t, "k1"))
	s, err := c.Seal([]byte("secret"), []byte("here"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Bytes {
		changed := codec.Sealed{Key: "k1", Bytes: slices.Clone(s.Bytes)}
		changed.Bytes[i] ^= 1
		if _, err := c.Open(changed, []byte("here")); !errors.Is(err, codec.ErrChanged) {
			t.Errorf("with byte %d changed: %v, want ErrChanged", i, err)
		}
		if _, err := c.Open(codec.Sealed{Key: "k1", Bytes: s.Bytes[:i]}, []byte("here")); !errors.Is(err, codec.ErrChanged) {
			t.Errorf("cut to %d bytes: %v, want ErrChanged", i, err)
		}
	}
	other := newCodec(t, newKey(t, "k1"))
	if _, err := other.Open(s, []byte("here")); !errors.Is(err, codec.ErrChanged) {
		t.Errorf("with another key of this ID: %v, want ErrChanged", err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	k1, k2 := newKey(t, "k1"), newKey(t, "k2")
	old, both, late := newCodec(t, k1), newCodec(t, k1, k2), newCodec(t, k2)
	s1, err := old.Seal([]byte("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s2, err := both.Seal([]byte("a"), nil)
	if err != nil || s2.Key != "k2" || both.Newest() != "k2" {
		t.Fatalf("sealed with %q, newest %q (%v): want the last key", s2.Key, both.Newest(), err)
	}
	for _, s := range []codec.Sealed{s1, s2} {
		if _, err := both.Open(s, nil); err != nil {
			t.Errorf("open what %s sealed: %v", s.Key, err)
		}
	}
	if _, err := old.Open(s2, nil); !errors.Is(err, codec.ErrNoKey) {
		t.Errorf("without the new key: %v, want ErrNoKey", err)
	}
	if _, err := late.Open(s1, nil); !errors.Is(err, codec.ErrNoKey) {
		t.Errorf("without the old key: %v, want ErrNoKey", err)
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	k1, k2 := newKey(t, "k1"), newKey(t, "k-2.b")
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("# of production\n\n"+k1.String()+"\r\n  "+k2.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := aesgcm.Open(path)
	if err != nil || c.Newest() != "k-2.b" {
		t.Fatalf("Open = %v, %v", c, err)
	}
	s, err := newCodec(t, k1).Seal([]byte("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(s, nil); err != nil {
		t.Error(err)
	}

	secret := strings.Fields(k1.String())[1]
	for text, want := range map[string]string{
		"":                                     "no key",
		"# nothing":                            "no key",
		secret:                                 "line 1: want the ID",
		"\nk1 abc":                             "line 2: the text after the ID is not 32 bytes",
		"k1 " + secret[4:]:                     "line 1",
		"k/1 " + secret:                        "line 1: the ID of a key may have",
		k1.String() + "\nk1 " + secret:         `key "k1" is given twice`,
		strings.Repeat("k", 65) + " " + secret: "1 to 64 bytes",
	} {
		_, err := aesgcm.Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%.20q) = %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error has the secret: %v", err)
		}
	}
	if _, err := aesgcm.New(aesgcm.Key{ID: "k1", Secret: []byte("password")}); err == nil {
		t.Error("a short key is taken")
	}
	if _, err := aesgcm.Open(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of no file = %v", err)
	}
}
