package weaver

import (
	"maps"
	"slices"
)

// warnUnserved logs the task types whose tasks, unless an enqueue says
// otherwise, wait in a queue that the engine does not serve.
func (cfg Config) warnUnserved() {
	if cfg.Queues == nil {
		return
	}
	for _, h := range cfg.Handlers {
		if _, served := cfg.Queues[h.queue]; !served {
			cfg.Logger.Warn("no queue of this engine holds the tasks of a type that it handles: they wait for another worker",
				"task_type", h.name, "queue", h.queue, "served", slices.Sorted(maps.Keys(cfg.Queues)))
		}
	}
}
