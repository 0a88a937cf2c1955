// Package codec is the interface of encryption at rest: a Codec seals the values of tasks before they reach a store
// or a bucket, and opens them again. Package aesgcm is a ready implementation.
//
// A codec protects the content of the files from a thief, and detects values that were changed or moved. It does not
// hide the number of values, their lengths, or the equality of two values at the same place.
package codec

import "errors"

var (
	// ErrNoCodec: a value is sealed, and no codec is configured.
	ErrNoCodec = errors.New("no codec is configured: set Config.Codec (ClientConfig.Codec), or --codec-key of the command")
	// ErrNoKey: a value is sealed with a key that the codec does not have.
	ErrNoKey = errors.New("the codec does not have this key: add it to the keys of Config.Codec (ClientConfig.Codec), or to the file of --codec-key")
	// ErrChanged: the sealed bytes were changed, belong to another place, or were sealed
	// with another key of the same ID.
	ErrChanged = errors.New("the sealed bytes have changed, were moved here from another place, or were sealed with another key of this ID")
)

// Sealed is the output of Codec.Seal.
type Sealed struct {
	Key   string // the ID of the key: 1 to MaxKeyID of the letters and digits of ASCII, '-', '_' and '.'
	Bytes []byte
}

// MaxKeyID is the maximum length of a key ID, in bytes.
const MaxKeyID = 64

// Codec seals and opens values. Its methods are safe for concurrent use.
type Codec interface {
	// Seal seals bytes with the newest key. place identifies the value; it is not part of the output, and Open fails
	// for another place. The same key, bytes and place must give the same output, because stores compare values. Seal
	// neither keeps nor changes plain and place.
	Seal(plain, place []byte) (Sealed, error)

	// Open returns the bytes that were given to Seal. Errors: ErrNoKey, ErrChanged. Any other error is treated as
	// temporary, and the value is read again later.
	Open(sealed Sealed, place []byte) ([]byte, error)

	// Newest returns the ID of the key that Seal uses.
	Newest() string
}

// CheckKeyID returns an error if a text is not a valid key ID.
func CheckKeyID(id string) error {
	if id == "" || len(id) > MaxKeyID {
		return errors.New("the ID of a key must have 1 to 64 bytes")
	}
	for i := range len(id) {
		if c := id[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return errors.New("the ID of a key may have the letters a to z and A to Z, digits, '-', '_' and '.'")
		}
	}
	return nil
}
