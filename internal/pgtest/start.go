package pgtest

// Options are those of a server of a test's own.
type Options struct {
	Fsync       bool     // also full_page_writes: what a user has, and slower
	ConfigLines []string // lines of postgresql.conf, as "max_connections = 20"
	HBALines    []string // lines of pg_hba.conf, before those that trust everybody
}
