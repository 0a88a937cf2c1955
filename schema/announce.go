package schema

import (
	"context"

	"github.com/goweaver/weaver"
)

// Announcer takes what is announced of task types: a weaver.Client, or an Engine.
type Announcer interface {
	AnnounceTypes(ctx context.Context, types ...weaver.TypeInfo) error
}

// Announce describes task types in the store, each as [Of] does. What is known already
// is not written again, and what a newer schema version of a type says stays. A program
// that runs tasks uses [Plugin].
func Announce(ctx context.Context, to Announcer, types ...weaver.AnyType) error {
	infos := make([]weaver.TypeInfo, 0, len(types))
	for _, t := range types {
		if t != nil {
			infos = append(infos, Of(t))
		}
	}
	return to.AnnounceTypes(ctx, infos...)
}

// Plugin has an engine announce the types of its handlers when it starts. If the store
// cannot take them, tasks run all the same, and it is tried again.
func Plugin() weaver.Plugin {
	return weaver.PluginFunc(func(s *weaver.Setup) error {
		s.OnStart(func(ctx context.Context, e *weaver.Engine) error { return Announce(ctx, e, handled(e.Handlers())...) })
		return nil
	})
}

// handled are the types of handlers, each once: of several handlers of a type the one
// without a name counts, or the first.
func handled(handlers []weaver.Handler) (types []weaver.AnyType) {
	at := make(map[string]int)
	for _, h := range handlers {
		i, seen := at[h.Name()]
		switch {
		case !seen:
			at[h.Name()] = len(types)
			types = append(types, h.Type())
		case h.Variant() == "":
			types[i] = h.Type()
		}
	}
	return types
}
