// Package codec is the interface of encryption at rest: a Codec seals the values
// of tasks before they reach a store or a bucket, and opens them again. Package
// aesgcm is one that is ready to use.
//
// A codec protects what a thief of the files can read, and notices when a value was
// changed or moved to another place. It does not hide how many values there are, how
// long they are, or that two values of the same place are equal.
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

// Sealed is what a Codec makes of bytes.
type Sealed struct {
	Key   string // the ID of the key: 1 to MaxKeyID of the letters and digits of ASCII, '-', '_' and '.'
	Bytes []byte
}

// MaxKeyID is how long the ID of a key may be, in bytes.
const MaxKeyID = 64

// Codec seals and opens values. Its methods are safe for concurrent use.
type Codec interface {
	// Seal seals bytes with the newest key. place says what they are; it is not kept
	// with them, and Open refuses them with another one. With the same key the
	// same bytes and place must give the same result: stores compare what they are
	// given with what they have. plain and place are neither kept nor changed.
	Seal(plain, place []byte) (Sealed, error)

	// Open returns the bytes that Seal was given. Errors: ErrNoKey, ErrChanged; any other
	// one is taken for passing, and the value is read again later.
	Open(sealed Sealed, place []byte) ([]byte, error)

	// Newest returns the ID of the key that Seal uses.
	Newest() string
}

// CheckKeyID reports what keeps a text from being the ID of a key.
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
