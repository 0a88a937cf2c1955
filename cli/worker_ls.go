package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
)

type workerLsCmd struct{}

// Help is shown by worker ls --help.
func (workerLsCmd) Help() string {
	return "The name of a worker is HOST:PID. A worker whose process died is listed for a while: as dead if this machine can tell, else " +
		"as silent. A worker in trouble cannot run tasks of a type, for example because it lacks file descriptors, a key or a bucket: " +
		"it releases them for other workers, and the lines below the table give the reason. SLOTS are the used slots and all slots. " +
		"The death of a PostgreSQL worker with a pooled connection, instead of a direct one, is only known on its own machine."
}

// Run implements the verb.
func (workerLsCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		workers, err := client.Workers(ctx)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"workers": orEmpty(workers)})
		}
		if len(workers) == 0 {
			s.printf("No worker of namespace %q of %s runs.\n", client.Namespace(), s.store())
			return nil
		}
		t := newTable("NAME", "STATE", "SLOTS", "CONNECTION", "LAST SEEN", "TYPES")
		t.gives = []give{{"TYPES", 20}}
		for i := range workers {
			w := &workers[i]
			state := plain("idle")
			switch {
			case w.InTrouble():
				state = painted("in trouble", text.Red)
			case w.Dead:
				state = painted("dead", text.Red)
			case w.Silent:
				state = painted("silent", text.Yellow)
			case w.Running.N > 0:
				state = plain("runs " + w.Running.String())
			}
			slots := "-"
			if w.Slots > 0 {
				slots = fmt.Sprintf("%s/%d", w.Running, w.Slots)
			}
			t.add(plain(text.OneLine(w.Name, explain.MaxNote)), state, plain(slots), plain(string(w.Connection)),
				s.when(w.LastSeen), plain(text.OneLine(strings.Join(w.Types, ", "), explain.MaxNote)))
		}
		s.list(t)
		for i := range workers {
			for _, tr := range workers[i].Troubles {
				s.printf("%s cannot run tasks of type %s since %s (released: %d): %s\n", text.OneLine(workers[i].Name, explain.MaxNote), tr.TaskType,
					s.clock.When(tr.Since), tr.Released, text.OneLine(tr.Error, explain.MaxMessage))
			}
		}
		return nil
	})
}
