package weaver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
)

// Cost of a draft: its input is checked once, in time and memory that grow with its size, not its
// depth.
func BenchmarkDraft(b *testing.B) {
	nested := strings.Repeat(`{"key":[`, 400)
	for name, raw := range map[string]string{
		"small":          `{"order":7,"customer":"a\u00e9"}`,
		"1MB_of_objects": "[" + strings.Repeat(`{"id":12345,"name":"abc"},`, 1<<20/26) + "0]",
		"1MB_nested":     nested + strings.Repeat("0,", 1<<19) + "0" + strings.Repeat("]}", 400),
		"1MB_of_keys":    `{"":0` + manyKeys(1<<20/12) + "}",
		// A large object must not slow down later small ones.
		"1MB_of_objects_after_a_large_one": `[{"":0` + manyKeys(1<<14) + "}" + strings.Repeat(`,{"id":1}`, 1<<20/9) + "]",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				weaver.NewDraft("bench.draft.json.v1", json.RawMessage(raw))
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"k`)
		for ; i > 0; i /= 26 {
			b.WriteByte(byte('a' + i%26))
		}
		b.WriteString(`":1`)
	}
	return b.String()
}
