package conn

import "testing"

func TestTranslate(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT 1":                             "SELECT 1",
		"a = ?1 AND b IN (?2,?13)":             "a = $1 AND b IN ($2,$13)",
		"a = '?1' AND \"?2\" = ?3":             "a = '?1' AND \"?2\" = $3",
		"a = 'it''s ?1' || ?1":                 "a = 'it''s ?1' || $1",
		"SELECT 1 -- ?1\n, ?2":                 "SELECT 1 -- ?1\n, $2",
		"SELECT /* ?1 */ ?2":                   "SELECT /* ?1 */ $2",
		"a ? 'b'":                              "a ? 'b'",
		"FROM t INDEXED BY by_end WHERE a":     "FROM t  WHERE a",
		"FROM t o INDEXED\n BY\tby_end, u":     "FROM t o , u",
		"FROM t NOT INDEXED WHERE NOT a":       "FROM t  WHERE NOT a",
		"FROM a CROSS JOIN b ON a.x = b.x":     "FROM a JOIN b ON a.x = b.x",
		"FROM a CROSS  JOIN b ON 'CROSS JOIN'": "FROM a JOIN b ON 'CROSS JOIN'",
		"SELECT INDEXED, CROSS, NOT_INDEXED":   "SELECT INDEXED, CROSS, NOT_INDEXED",
		"CROSS JOINED":                         "CROSS JOINED",
		"SELECT a FROM t /*lock*/":             "SELECT a FROM t FOR UPDATE",
		"SELECT a FROM t o /*lock o*/":         "SELECT a FROM t o FOR UPDATE OF o",
		"SELECT 1 /*locked*/ /* lock */":       "SELECT 1 /*locked*/ /* lock */",
		"SELECT '/*lock*/'":                    "SELECT '/*lock*/'",
		"SELECT 'open ?1":                      "SELECT 'open ?1",
		"SELECT /*lock":                        "SELECT /*lock",
		"ä?1ö?2?":                              "ä$1ö$2?",
		"a IN (/*ids*/?2) AND b IN (?3)":       "a = ANY(CAST($2 AS bytea[])) AND b IN ($3)",
		"a IN (/*ids*/?2":                      "a IN (/*ids*/$2",
		"":                                     "",
	} {
		if got := Translate(sql); got != want {
			t.Errorf("%q became %q, want %q", sql, got, want)
		}
		if got := Translate(sql); got != want {
			t.Errorf("%q became %q the second time", sql, got)
		}
	}
}

// Each statement that writes the state of a task writes end_state, too.
func TestTranslate_AddsEndState(t *testing.T) {
	t.Parallel()
	const of = " IN ('failed', 'blocked', 'cancelled') THEN "
	for sql, want := range map[string]string{
		"UPDATE weaver_tasks SET cost = 1, state = ?3 WHERE a":                      "UPDATE weaver_tasks SET cost = 1, state = $3, end_state = CASE WHEN $3" + of + "$3 END WHERE a",
		"UPDATE weaver_tasks t SET state = u.b, n = f(a, b) FROM u":                 "UPDATE weaver_tasks t SET state = u.b, end_state = CASE WHEN u.b" + of + "u.b END, n = f(a, b) FROM u",
		"UPDATE weaver_tasks SET\n  n = 1,\n  state = 'ready', a = 2 WHERE state":   "UPDATE weaver_tasks SET\n  n = 1,\n  state = 'ready', end_state = NULL, a = 2 WHERE state",
		"UPDATE weaver_tasks SET state = 'cancelled'":                               "UPDATE weaver_tasks SET state = 'cancelled', end_state = 'cancelled'",
		"WITH a AS (UPDATE weaver_tasks SET state = f('),', ?1)) SELECT state = ?1": "WITH a AS (UPDATE weaver_tasks SET state = f('),', $1), end_state = CASE WHEN f('),', $1)" + of + "f('),', $1) END) SELECT state = $1",
		"UPDATE weaver_tasks SET a = (SELECT x, y FROM z), state = 'running'":       "UPDATE weaver_tasks SET a = (SELECT x, y FROM z), state = 'running'",
		"UPDATE weaver_tasks SET new_state = 'ready' WHERE state = 'failed'":        "UPDATE weaver_tasks SET new_state = 'ready' WHERE state = 'failed'",
		"UPDATE weaver_jobs SET state = 'failed'":                                   "UPDATE weaver_jobs SET state = 'failed'",
		"SELECT 1 FROM weaver_tasks FOR UPDATE weaver_tasks ":                       "SELECT 1 FROM weaver_tasks FOR UPDATE weaver_tasks ",
	} {
		if got := Translate(sql); got != want {
			t.Errorf("%q became\n%q, want\n%q", sql, got, want)
		}
	}
}
