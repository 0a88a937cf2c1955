package value

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the maximum length of a task name in a pipeline, in bytes.
const MaxName = 100

// NodeName returns the name of a node: convert[a.mp4]. It shortens a value that is
// too long or not printable and adds a hash.
func NodeName(task, label string) string {
	name := task + "[" + label + "]"
	printable := !strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) })
	if len(name) <= MaxName && printable {
		return name
	}
	sum := sha256.Sum256([]byte(label))
	hash := "~" + hex.EncodeToString(sum[:6])
	shown := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, label)
	room := max(0, MaxName-len(task)-len("[]")-len(hash))
	for len(shown) > room {
		_, size := utf8.DecodeLastRuneInString(shown)
		shown = shown[:len(shown)-size]
	}
	return task + "[" + shown + hash + "]"
}
