package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// migrateCmd groups the verbs of the schema.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Create the store's file, or update its schema."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations of the store."`
	Print  migratePrintCmd  `cmd:"" help:"Print the schema as SQL."`
}

// migration is the JSON form of one migration.
type migration struct {
	Version   int       `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

func migrationsOf(list []store.MigrationStatus, which func(store.MigrationStatus) bool) []migration {
	found := []migration{}
	for _, m := range list {
		if which(m) {
			found = append(found, migration(m))
		}
	}
	return found
}

func isPending(m store.MigrationStatus) bool { return m.AppliedAt.IsZero() }

type migrateUpCmd struct{}

// Run implements the verb.
func (migrateUpCmd) Run(ctx context.Context, s *session) error {
	return s.withStore(ctx, true, func(st openedStore) error {
		before, err := st.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		if err := st.Migrate(ctx); err != nil {
			return err
		}
		applied := migrationsOf(before, isPending)
		if s.json() {
			return s.writeJSON(map[string]any{"store": s.store(), "applied": applied})
		}
		if len(applied) == 0 {
			s.printf("%s is up to date: %s.\n", s.store(), text.Plural(len(before), "migration"))
			return nil
		}
		for _, m := range applied {
			s.printf("%s: applied %04d_%s\n", s.store(), m.Version, m.Name)
		}
		return nil
	})
}

type migrateStatusCmd struct{}

// Run implements the verb.
func (migrateStatusCmd) Run(ctx context.Context, s *session) error {
	return s.withStore(ctx, false, func(st openedStore) error {
		list, err := st.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{
				"store":      s.store(),
				"migrations": migrationsOf(list, func(store.MigrationStatus) bool { return true }),
				"pending":    len(migrationsOf(list, isPending)),
			})
		}
		t := newTable("VERSION", "NAME", "APPLIED")
		for _, m := range list {
			applied := painted("pending", text.Yellow)
			if !m.AppliedAt.IsZero() {
				applied = plain(s.clock.When(m.AppliedAt))
			}
			t.add(plain(fmt.Sprintf("%04d", m.Version)), plain(m.Name), applied)
		}
		t.print(s.out, s.paint, "")
		if n := len(migrationsOf(list, isPending)); n > 0 {
			s.printf("\n%s to apply: run `%s`.\n", text.Plural(n, "migration"), s.command("migrate", "up"))
		}
		return nil
	})
}

type migratePrintCmd struct{}

// Run implements the verb.
func (migratePrintCmd) Run(_ context.Context, s *session) error {
	p, err := placeOf(s.flags.Store)
	if err != nil {
		return err
	}
	sql := p.schema()
	if s.json() {
		return s.writeJSON(map[string]any{"sql": sql})
	}
	s.printf("%s\n", sql)
	return nil
}
