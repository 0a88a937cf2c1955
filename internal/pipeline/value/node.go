package value

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is how long the name of a task of a pipeline may be, in bytes.
const MaxName = 100

// NodeName is the name of a node of a task: convert[a.mp4]. A value that is too
// long for a name, or that cannot be printed, is shortened and has a hash.
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
