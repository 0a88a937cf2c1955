package task

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKey is the maximum length in bytes of a text that stores index or use as a key. These are names of queues,
// steps, signals and jobs, idempotency and concurrency keys, and keys and values of labels.
const MaxKey = 255

// CheckKey returns an error unless every store can use a text as a key: at most [MaxKey] bytes and accepted by
// [CheckText]. The error calls the text what.
func CheckKey(what, text string) error {
	if len(text) > MaxKey {
		return fmt.Errorf("%s: %.40q… is %d bytes long, at most %d are allowed", what, text, len(text), MaxKey)
	}
	return CheckText(what, text)
}

// CheckText returns an error unless every store can keep a text: UTF-8 without NUL. The error calls the text what.
func CheckText(what, text string) error {
	switch {
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("%s: %.40q contains a NUL byte", what, text)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s: %.40q is not UTF-8", what, text)
	}
	return nil
}
