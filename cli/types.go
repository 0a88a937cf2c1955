package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/store"
)

// types are the task types that this program knows, by name: its own and those
// of package builtin.
func (s *session) types() map[string]weaver.Handler {
	return byName(appOver(builtin.Handlers(builtin.Config{}), s.app.Handlers))
}

func byName(handlers []weaver.Handler) map[string]weaver.Handler {
	named := make(map[string]weaver.Handler, len(handlers))
	for _, h := range handlers {
		named[h.Name()] = h
	}
	return named
}

// unknownTypes judges task types that this program does not know. The store is
// read once, when the first is asked about.
type unknownTypes struct {
	session   *session
	force     bool
	announced func() (announced, error)
	err       error // of the store, which could not be asked
}

func (s *session) unknownTypes(ctx context.Context, force bool) *unknownTypes {
	return &unknownTypes{session: s, force: force, announced: sync.OnceValues(func() (announced, error) { return s.announced(ctx) })}
}

// problem says what is wrong with a type, and what to do: "" if it is forced, or
// if a worker of the store announced that it handles it. The caller looks at err.
func (u *unknownTypes) problem(typeName string) (problem, hint string) {
	if u.force {
		return "", ""
	}
	of, err := u.announced()
	if u.err = err; err != nil || of.handled[typeName] {
		return "", ""
	}
	known := slices.Sorted(maps.Keys(u.session.types()))
	known = slices.AppendSeq(known, maps.Keys(of.handled))
	for name := range of.described {
		if name != typeName { // a worker that has left handled it
			known = append(known, name)
		}
	}
	return "which neither this program knows nor a worker of the store" + didYouMean(typeName, known),
		"use the program that defines it, start a worker that handles it, or store it unchecked with --force-unknown-type"
}

// info returns how workers of the store described a type, those that have left too; its
// Name is "" if none did. The caller looks at err.
func (u *unknownTypes) info(typeName string) weaver.TypeInfo {
	if u.force {
		return weaver.TypeInfo{}
	}
	of, err := u.announced()
	u.err = err
	return of.described[typeName]
}

// announced are the task types that workers of the store handle, and those that they
// described.
type announced struct {
	handled   map[string]bool
	described map[string]weaver.TypeInfo
}

func (s *session) announced(ctx context.Context) (announced, error) {
	types := announced{make(map[string]bool), make(map[string]weaver.TypeInfo)}
	err := s.withStore(ctx, false, func(st openedStore) error {
		if err := st.Ready(ctx); err != nil {
			return err
		}
		o, err := st.Overview(ctx, s.flags.Namespace, store.OverviewRequest{Parts: store.OverviewWorkers})
		for _, w := range o.Workers {
			for _, name := range w.Types {
				types.handled[name] = true
			}
		}
		if err != nil {
			return err
		}
		infos, err := store.TypesOf(ctx, st, s.flags.Namespace)
		for _, t := range infos {
			types.described[t.Name] = t
		}
		return err
	})
	if errors.Is(err, errNoStore) || errors.Is(err, store.ErrNotMigrated) {
		return announced{}, nil // a store that does not exist has no workers
	}
	return types, err
}

// runnable are the types that a file may have that this program runs itself.
func runnable(handlers []weaver.Handler) pipeline.Types {
	return pipeline.Types{Known: byName(handlers), Unknown: func(string) (problem, hint string) {
		return "for which this program has no handler", "run it with the program that has this task type, or submit it for a worker that has"
	}}
}
