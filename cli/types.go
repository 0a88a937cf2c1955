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

// types returns the task types that this program knows, by name: its own and those of package builtin.
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

// unknownTypes checks task types that this program does not know. It reads the store once, for the first such type.
type unknownTypes struct {
	session   *session
	force     bool
	announced func() (announced, error)
	err       error // the error of reading the store
}

func (s *session) unknownTypes(ctx context.Context, force bool) *unknownTypes {
	return &unknownTypes{session: s, force: force, announced: sync.OnceValues(func() (announced, error) { return s.announced(ctx) })}
}

// problem returns the problem with a type and a suggestion. Both are "" if the type is forced or a worker of the
// store announced it. The caller checks u.err.
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

// info returns the description of a type that workers of the store announced, including workers that left. Its Name
// is "" if no worker did. The caller checks u.err.
func (u *unknownTypes) info(typeName string) store.AnnouncedType {
	if u.force {
		return store.AnnouncedType{}
	}
	of, err := u.announced()
	u.err = err
	return of.described[typeName]
}

// announced holds the task types that workers of the store handle, and the types that they described.
type announced struct {
	handled   map[string]bool
	described map[string]store.AnnouncedType
}

func (s *session) announced(ctx context.Context) (announced, error) {
	types := announced{make(map[string]bool), make(map[string]store.AnnouncedType)}
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
		infos, err := st.Types(ctx, s.flags.Namespace)
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

// runnable returns the types that this program can run from a file.
func runnable(handlers []weaver.Handler) pipeline.Types {
	return pipeline.Types{Known: byName(handlers), Unknown: func(string) (problem, hint string) {
		return "for which this program has no handler", "run it with the program that has this task type, or submit it for a worker that has"
	}}
}
