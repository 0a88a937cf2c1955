package memstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

// announce stores announced types.
func (o *op) announce(cmd store.AnnounceTypes) store.CommandResult {
	types, err := rules.CheckTypes(&cmd)
	if err != nil {
		return store.CommandResult{Err: err}
	}
	res := store.CommandResult{Existing: true}
	for _, t := range types {
		_, digest, err := rules.TypeBody(t)
		if err != nil {
			return store.CommandResult{Err: err}
		}
		var known *rules.KnownType
		if old, ok := o.types[t.Name]; ok {
			is := old
			is.AnnouncedAt, is.AnnouncedBy = t.AnnouncedAt, t.AnnouncedBy
			_, sum, err := rules.TypeBody(is)
			if err != nil {
				return store.CommandResult{Err: err}
			}
			known = &rules.KnownType{SchemaVersion: old.SchemaVersion, CodeVersion: old.CodeVersion, Digest: sum}
		}
		code, write := rules.Announced(known, &t, digest)
		if !write {
			continue
		}
		t.CodeVersion, t.AnnouncedAt, t.AnnouncedBy = code, o.now, cmd.By
		o.types[t.Name] = copyType(t)
		res.Existing = false
	}
	return res
}

// Types implements store.Data.
func (s *Store) Types(ctx context.Context, ns string, names ...string) (types []store.AnnouncedType, err error) {
	err = s.do(ctx, ns, func(o *op) { types = o.announced(names) })
	return types, err
}

// announced returns the types of the given names, or all types if there are no names,
// ordered by name.
func (sp *space) announced(names []string) (types []store.AnnouncedType) {
	for _, name := range slices.Sorted(maps.Keys(sp.types)) {
		if len(names) == 0 || slices.Contains(names, name) {
			types = append(types, copyType(sp.types[name]))
		}
	}
	return types
}

// copyType copies a type in the form in which a database returns it.
func copyType(t store.AnnouncedType) (c store.AnnouncedType) {
	if raw, err := json.Marshal(t); err == nil {
		_ = json.Unmarshal(raw, &c) // it was just encoded
	}
	return c
}
