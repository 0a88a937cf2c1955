package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/store"
)

var (
	sqlAuditPage     = `SELECT ` + auditColumns.List() + ` FROM weaver_audit WHERE namespace = ?1 AND audit_id < ?2 ORDER BY audit_id DESC LIMIT ?3`
	sqlAuditOfTarget = `
SELECT ` + auditColumns.List() + ` FROM weaver_audit INDEXED BY weaver_audit_by_target
WHERE namespace = ?1 AND target = ?4 AND audit_id < ?2 ORDER BY audit_id DESC LIMIT ?3`
)

// Audit implements store.Observe. Operations that write entries of one namespace wait for each
// other, so that IDs are in commit order.
func (s *Store) Audit(ctx context.Context, ns string, f store.AuditFilter) (list []store.AuditEntry, next string, err error) {
	before, err := f.Before()
	if err != nil {
		return nil, "", err
	}
	limit := store.PageLimit(f.Limit)
	for looks, n := s.Looks, limit+1; ; n *= 2 {
		n = min(n, readChunk, looks)
		var chunk []store.AuditEntry
		err := s.read(ctx, ns, func(v *View) (err error) {
			sql := sqlAuditPage
			if f.Target != "" {
				sql = sqlAuditOfTarget
			}
			st := v.stmt(sql).Text(1, ns).Int(2, before).Int(3, int64(n))
			if f.Target != "" {
				st.Text(4, f.Target)
			}
			chunk, err = auditColumns.All(st)
			return err
		})
		if err != nil {
			return nil, "", err
		}
		for i := range chunk {
			if !f.Selects(&chunk[i]) {
				continue
			}
			if len(list) == limit {
				return list, list[limit-1].Cursor(), nil
			}
			list = append(list, chunk[i])
		}
		if len(chunk) < n {
			return list, "", nil
		}
		before = chunk[n-1].ID
		if looks -= n; looks <= 0 {
			return list, chunk[n-1].Cursor(), nil
		}
	}
}
