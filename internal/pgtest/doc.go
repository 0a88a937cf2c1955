// Package pgtest provides PostgreSQL for tests: a new database ([URL]), a server of their own
// that they may stop, kill, pause or replace by its standby ([Start]), PgBouncer in front of
// it ([Bouncer]), and a failing network ([NewProxy]).
//
// Everything runs in a temporary folder on free ports of 127.0.0.1, and ends with the program
// that started it, however the program ends. The programs are installed on the machine by
// `make services`. go test -short leaves out tests with a database: every function here that
// takes a test skips it then, unless the test comes from [InShort].
//
// The functions may be called in a bubble of testing/synctest: they start everything outside
// of it.
package pgtest
