// Package notices tells the other processes on a database what was committed here, and
// hears what they tell.
//
// NOTIFY takes a lock for all commits of a database, so no transaction of the store
// carries one. Each process has a session of its own beside the pool: in it it listens,
// and in it it tells, in one statement for all that was committed since the last one,
// at most 20 times a second, and only to those who want to know: workers that say in
// their rows that they are idle, callers that wait for tasks and jobs, or follow their events (their processes
// hold an advisory lock, shared), and workers of tasks that were asked to cancel.
//
// A worker says that it is idle after a claim that found nothing, and looks once more
// when its row says so: what was committed before that was not told to it. What is told
// is a hint. Beside it each process looks once a second, in one statement, for what its
// workers and callers wait for: that works through a pooler too, where there is no
// session to listen in.
package notices
