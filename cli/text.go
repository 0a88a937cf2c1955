package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/internal/text"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// indent prefixes every line of a text with a margin.
func indent(margin, recorded string) string {
	return margin + strings.ReplaceAll(strings.TrimRight(recorded, "\n"), "\n", "\n"+margin)
}

// printf appends to the result.
func (s *session) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// writeJSON prints one object.
func (s *session) writeJSON(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	s.printf("%s", text.PlainJSON(b.String())) // recorded values contain escapes of their own
	return nil
}

// maxShown is the maximum length in bytes of a JSON value in text output.
const maxShown = 2000

// jsonText formats a recorded JSON value on one line.
func jsonText(raw json.RawMessage) string {
	if err := seal.Failure(raw); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		b.Reset()
		b.Write(raw)
	}
	line := text.PlainJSON(b.String())
	if len(line) > maxShown {
		return text.OneLine(line[:maxShown], maxShown) + fmt.Sprintf("… (%d bytes; -o json shows all)", len(line))
	}
	return text.Printable(line)
}
