// Package pgtest gives tests PostgreSQL: a fresh database ([URL]), a server of
// their own that they may stop, kill, pause or replace by its standby ([Start]),
// PgBouncer before it ([Bouncer]), and a network that fails ([NewProxy]).
//
// Everything runs in a temporary folder on free ports of 127.0.0.1 and ends with
// the program that started it, however that ends. The programs are those of this
// machine; `make services` installs them. Tests with a database are left out by
// go test -short: every function here that takes a test skips it then, unless it
// has the test from [InShort].
//
// The functions may be called in a bubble of testing/synctest: what they start
// runs outside of it.
package pgtest
