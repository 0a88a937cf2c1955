package redis

import (
	"strings"

	"github.com/goweaver/weaver/delivery"
)

// keys makes the keys of one namespace.
type keys struct{ tag string }

// keysOf returns the keys of a namespace. The hash tag is never empty and has no brace in it.
func keysOf(prefix, namespace string) keys {
	return keys{"{" + escape(prefix) + ":" + escape(namespace) + "}"}
}

func (k keys) hints(l delivery.Lane) string {
	return k.tag + ":hints:" + escape(l.Queue) + ":" + escape(l.Type)
}
func (k keys) queues(typ string) string { return k.tag + ":queues:" + escape(typ) }
func (k keys) news(typ string) string   { return k.tag + ":news:" + escape(typ) }

// escape returns a name without colons and braces, different for each name.
func escape(name string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_./", c) >= 0
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
