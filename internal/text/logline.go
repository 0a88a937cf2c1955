package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/task/event"
)

// LogLine formats a stored log line or stream chunk; it returns false for any other event.
func LogLine(ev event.Event, zone *time.Location) (string, bool) {
	at := ev.Head().At.In(zone).Format("2006-01-02 15:04:05.000")
	switch ev := ev.(type) {
	case event.LogWritten:
		said := []string{at, ev.Level.String()}
		if ev.Step != "" {
			said = append(said, ev.Step+":")
		}
		said = append(said, ev.Message)
		for _, key := range slices.Sorted(maps.Keys(ev.Data)) {
			said = append(said, fmt.Sprintf("%s=%v", key, ev.Data[key]))
		}
		return Printable(strings.Join(said, " ")), true
	case event.StreamChunk:
		return Printable(fmt.Sprintf("%s %s| %v", at, ev.Stream, ev.Data)), true
	}
	return "", false
}
