package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// examineServer records the figures of a store's server and the warnings of a store.
func (f *checkup) examineServer(ctx context.Context, st store.Store, ns string) error {
	list := st.Warnings(ctx)
	if m, ok := st.(monitored); ok {
		figures, alarms, err := m.Health(ctx, ns)
		if err != nil {
			return err
		}
		list = append(list, alarms...)
		f.Server = make(map[string]any, len(figures))
		for _, a := range figures {
			if a.Value.Kind() == slog.KindDuration {
				a.Key += "_ns"
			}
			f.Server[a.Key] = a.Value.Any()
		}
	}
	for _, w := range list {
		f.Warnings = append(f.Warnings, warning{w.Key, w.Text})
	}
	return nil
}

// printServer prints the server's figures and the warnings.
func (s *session) printServer(f *checkup) {
	if f.Server != nil {
		duration := func(key string) string {
			d, _ := f.Server[key].(time.Duration)
			return d.String()
		}
		s.printf("%s, %s, schema %v: the oldest transaction has lasted %s, the oldest due task has waited for %s.\n",
			text.Printable(fmt.Sprint(f.Server["server"])), linkOf(f.Server["direct"] == true), f.Server["schema"], duration("oldest_transaction_ns"), duration("oldest_due_ns"))
	}
	for _, w := range f.Warnings {
		s.printf("%s: %s.\n", s.paint.Paint(text.Yellow, "Warning"), text.Printable(w.Text))
	}
}

// linkOf describes the connection to the server of a store.
func linkOf(direct bool) string {
	if direct {
		return "direct"
	}
	return "pooled"
}
