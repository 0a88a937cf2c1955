package view

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/task/event"
)

// plainValue converts a logged value to nil, a bool, a string or a
// json.RawMessage, as in events.
func plainValue(v any) any {
	return event.Plain(event.StreamChunk{Data: v}).(event.StreamChunk).Data
}

// valueText formats a plain value for people.
func valueText(v any) string {
	switch v := v.(type) {
	case json.RawMessage:
		return string(v)
	case string:
		if strings.ContainsAny(v, " \n\"=") || v == "" {
			return fmt.Sprintf("%q", v)
		}
		return v
	}
	return fmt.Sprint(v)
}
