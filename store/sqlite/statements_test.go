package sqlite_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/sqlstore/sqltext"
	"github.com/goweaver/weaver/store/sqlite"
)

// statements returns the SQL statements of the store by name.
func statements(t *testing.T) map[string]string {
	t.Helper()
	return sqltext.All(t, map[string]string{"versionColumns": sqlite.VersionColumns}, ".")
}

// crossNamespaces lists the statements that may touch a table of ours without a namespace,
// each with the reason.
var crossNamespaces = map[string]string{
	"sqlVersions":    "the schema is of all namespaces",
	"sqlAddVersion":  "the schema is of all namespaces",
	"sqlAddAdditive": "the schema is of all namespaces",
	"sqlKeepClock":   "time is the same in all namespaces",
	"sqlAcceptClock": "time is the same in all namespaces",

	"sqlRescueDispatch": "time is the same in all namespaces",
	"sqlRescueTasks":    "time is the same in all namespaces",

	"sqlProbe":      "the schema is of all namespaces",
	"sqlUnprobe":    "the schema is of all namespaces",
	"sqlAllWorkers": "lock files are of all namespaces",
}

var (
	// ours matches a use of one of our tables, with its alias.
	ours = regexp.MustCompile(`(?:FROM|INTO|UPDATE|JOIN)\s+(weaver_\w+)(?:\s+([a-z])\b)?`)
	// literals matches SQL string literals, whose words do not belong to the statement.
	literals = regexp.MustCompile(`'[^']*'`)
)

// No statement reads or writes rows of two namespaces: for each use of a table of ours it
// compares the namespace of that table, or sets it.
func TestEveryStatementHasANamespace(t *testing.T) {
	t.Parallel()
	for name, sql := range statements(t) {
		if crossNamespaces[name] != "" {
			continue
		}
		sql := literals.ReplaceAllString(sql, "''")
		uses := ours.FindAllStringSubmatchIndex(sql, -1)
		for i, use := range uses {
			// The predicate of a table stands between its use and the end of its own SELECT.
			// The next use may be a subquery with its own predicate, so each use needs one.
			end := len(sql)
			if i+1 < len(uses) {
				end = uses[i+1][0]
			}
			alias := `(?:\w+\.)?`
			if use[4] >= 0 {
				alias = regexp.QuoteMeta(sql[use[4]:use[5]]) + `\.`
			}
			predicate := regexp.MustCompile(`\b` + alias + `namespace = (?:\?1|''|[a-z]\.namespace)`)
			inserted := strings.HasPrefix(strings.TrimSpace(sql), "INSERT") && i == 0
			switch {
			case inserted && regexp.MustCompile(`(?s)\(\s*namespace\b.*(?:VALUES \(|SELECT )(?:\?1|namespace)\b`).MatchString(sql):
			case predicate.MatchString(sql[use[0]:end]), use[4] >= 0 && predicate.MatchString(sql), i == 0 && endsWithNamespace(sql):
			default:
				t.Errorf("%s uses %s without its namespace:\n%s", name, sql[use[2]:use[3]], sql)
			}
		}
	}
}

// endsWithNamespace reports whether the outermost WHERE, which comes after subqueries in a SET
// or a SELECT list, compares the namespace.
func endsWithNamespace(sql string) bool {
	i := strings.LastIndex(sql, "\nWHERE namespace = ?1")
	return i >= 0
}
