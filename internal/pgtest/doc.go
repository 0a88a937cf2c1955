// Package pgtest provides PostgreSQL for tests. [URL] creates a database. [Start] starts a
// server of the test's own, which it may stop, kill, pause or replace by its standby.
// [Bouncer] starts PgBouncer in front of a server, and [NewProxy] a failing network.
//
// Everything runs in a temporary folder on free ports of 127.0.0.1, and ends with the program
// that started it, however the program ends. The programs are installed on the machine by
// `make services`. go test -short leaves out tests with a database: every function here that
// takes a test skips it then, unless the test comes from [InShort].
//
// The functions may be called in a bubble of testing/synctest: they start everything outside
// of it.
package pgtest
