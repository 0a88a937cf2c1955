// Package sample is mutated by the test of the command.
package sample

const table = `FROM things`

const query = `SELECT a ` + table + `
WHERE a = 1 AND b = 2`

// Query returns a statement.
func Query() string { return query }

// Clamp returns the smaller of n and limit.
func Clamp(n, limit int64) int64 {
	if n > limit {
		return limit
	}
	return n
}

// Both has operands on two lines.
func Both(a, b bool) bool {
	return a &&
		!b
}

// Untested has no test.
func Untested(n int) int { return n + 1 }

const (
	limit  = ` LIMIT 5`
	recent = `SELECT a FROM things WHERE c = 1`
)

// few depends on a constant declared next to one with mutants.
const few = `SELECT a FROM things` + limit

// Few returns statements.
func Few() [2]string { return [2]string{recent, few} }
