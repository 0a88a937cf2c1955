package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
)

// announcedRow is a row of weaver_types.
type announcedRow struct {
	store.AnnouncedType // without the fields in the body
	body                []byte
}

var typeColumns = sqlstmt.Columns[announcedRow]{
	sqlstmt.Col("body", func(t *announcedRow, r *sqlstmt.Row, i int) { t.body = r.Bytes(i) }),
	sqlstmt.Col("code_version", func(t *announcedRow, r *sqlstmt.Row, i int) { t.CodeVersion = int(r.Int(i)) }),
	sqlstmt.Col("announced_at", func(t *announcedRow, r *sqlstmt.Row, i int) { t.AnnouncedAt = r.Time(i) }),
	sqlstmt.Col("announced_by", func(t *announcedRow, r *sqlstmt.Row, i int) { t.AnnouncedBy = r.Text(i) }),
}

var (
	sqlTypes  = `SELECT ` + typeColumns.List() + ` FROM weaver_types WHERE namespace = ?1 ORDER BY task_type`
	sqlTypeOf = `SELECT ` + typeColumns.List() + ` FROM weaver_types WHERE namespace = ?1 AND task_type = ?2`
)

const (
	sqlTypeKnown = `SELECT schema_version, code_version, digest FROM weaver_types WHERE namespace = ?1 AND task_type = ?2`

	// Two transactions may both have read the stored type. Even then a lower schema version
	// does not replace a higher one.
	sqlAnnounce = `
INSERT INTO weaver_types (namespace, task_type, schema_version, code_version, digest, announced_at, announced_by, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (namespace, task_type) DO UPDATE SET schema_version = excluded.schema_version, code_version = excluded.code_version, digest = excluded.digest,
  announced_at = excluded.announced_at, announced_by = excluded.announced_by, body = excluded.body
WHERE weaver_types.schema_version <= excluded.schema_version`
)

// announce stores announced types.
func (o *operation) announce(cmd store.AnnounceTypes, got *store.CommandResult) error {
	types, refused := rules.CheckTypes(&cmd)
	if got.Err = refused; refused != nil {
		return nil
	}
	got.Existing = true
	// By name, so that two announcements do not deadlock on each other's rows.
	slices.SortStableFunc(types, func(a, b store.AnnouncedType) int { return cmp.Compare(a.Name, b.Name) })
	for i := range types {
		written, err := o.tx.announceType(&types[i], cmd.By)
		if err != nil {
			return err
		}
		got.Existing = got.Existing && !written
	}
	return nil
}

func (t *Tx) announceType(a *store.AnnouncedType, by string) (written bool, err error) {
	body, digest, err := rules.TypeBody(*a)
	if err != nil {
		return false, err
	}
	known, err := t.knownType(a.Name)
	if err != nil {
		return false, err
	}
	code, write := rules.Announced(known, a, digest)
	if !write {
		return false, nil
	}
	return true, t.stmt(sqlAnnounce).Text(1, t.ns).Text(2, a.Name).Int(3, int64(a.SchemaVersion)).Int(4, int64(code)).
		Text(5, digest).Int(6, t.mic).Text(7, by).Text(8, string(body)).Run()
}

func (t *Tx) knownType(name string) (known *rules.KnownType, err error) {
	st := t.stmt(sqlTypeKnown).Text(1, t.ns).Text(2, name)
	if st.One() {
		known = &rules.KnownType{SchemaVersion: int(st.ColInt(0)), CodeVersion: int(st.ColInt(1)), Digest: st.ColText(2)}
	}
	return known, st.Done()
}

// Types implements store.Data.
func (s *Store) Types(ctx context.Context, ns string, names ...string) (types []store.AnnouncedType, err error) {
	err = s.read(ctx, ns, func(v *View) error {
		types, err = v.types(names)
		return err
	})
	return types, err
}

// types returns the announced types with some names; without names, all types.
func (v *View) types(names []string) (types []store.AnnouncedType, err error) {
	var rows []announcedRow
	if len(names) == 0 {
		if rows, err = typeColumns.All(v.stmt(sqlTypes).Text(1, v.ns)); err != nil {
			return nil, err
		}
	}
	names = slices.Clone(names)
	slices.SortFunc(names, strings.Compare)
	for _, name := range slices.Compact(names) {
		row, err := typeColumns.One(v.stmt(sqlTypeOf).Text(1, v.ns).Text(2, name))
		if err != nil {
			return nil, err
		}
		if row != nil {
			rows = append(rows, *row)
		}
	}
	for i := range rows {
		t := rows[i].AnnouncedType
		if err := json.Unmarshal(rows[i].body, &t); err != nil {
			return nil, fmt.Errorf("read an announced type: %w", err)
		}
		types = append(types, t)
	}
	return types, nil
}
