package schema

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// Announcer stores descriptions of task types: a weaver.Client or an Engine.
type Announcer interface {
	AnnounceTypes(ctx context.Context, types ...store.AnnouncedType) error
}

// Announce describes task types in the store, each as by [Of]. It does not rewrite unchanged descriptions or replace
// those of a newer schema version. A program that runs tasks uses [Plugin].
func Announce(ctx context.Context, to Announcer, types ...weaver.AnyType) error {
	infos := make([]store.AnnouncedType, 0, len(types))
	for _, t := range types {
		if t != nil {
			infos = append(infos, Of(t))
		}
	}
	return to.AnnounceTypes(ctx, infos...)
}

// AnnounceHandled describes the types of an engine's handlers, as [Plugin] does when the engine starts. A program that
// answers requests before calls it first.
func AnnounceHandled(ctx context.Context, e *weaver.Engine) error {
	return Announce(ctx, e, handled(e.Handlers())...)
}

// Plugin makes an engine announce the types of its handlers when it starts. If the store cannot take them, tasks
// still run, and the announcement is retried.
func Plugin() weaver.Plugin {
	return weaver.PluginFunc(func(s *weaver.Setup) error {
		s.OnStart(AnnounceHandled)
		return nil
	})
}

// handled returns the types of handlers, each once. Of several handlers of a type it uses the unnamed one, or the
// first.
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
