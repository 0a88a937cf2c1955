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
