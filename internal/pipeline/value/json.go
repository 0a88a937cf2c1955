package value

import (
	"bytes"
	"encoding/json"

	"github.com/goweaver/weaver/internal/pipeline/template"
)

// mapStrings returns JSON with its strings replaced by fn and everything else as
// written: keys, their order, numbers. It keeps strings that cannot be templates.
func mapStrings(raw json.RawMessage, fn func(text string) json.RawMessage) json.RawMessage {
	if !template.Has(string(raw)) && !bytes.Contains(raw, []byte(`\u007b`)) && !bytes.Contains(raw, []byte(`\u007B`)) || !json.Valid(raw) {
		return raw
	}
	made := make(json.RawMessage, 0, len(raw))
	for at := 0; at < len(raw); {
		if raw[at] != '"' {
			made = append(made, raw[at])
			at++
			continue
		}
		end := at + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end++
		quoted := raw[at:end]
		at = end
		key := bytes.HasPrefix(bytes.TrimLeft(raw[at:], " \t\r\n"), []byte(":"))
		var text string
		if key || json.Unmarshal(quoted, &text) != nil || !template.Has(text) {
			made = append(made, quoted...)
			continue
		}
		made = append(made, fn(text)...)
	}
	return made
}

// quote returns a text as a JSON string.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return json.RawMessage(`""`) // Marshal accepts every string
	}
	return bytes.TrimSpace(b.Bytes())
}
