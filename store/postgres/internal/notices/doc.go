// Package notices notifies the other processes on a database of commits of this process, and
// receives their notifications.
//
// NOTIFY takes a lock for all commits of a database, so no transaction of the store contains
// one. Each process has its own session outside the pool, in which it listens and notifies. It
// notifies in one statement for all commits since the last one, at most 20 times a second. It
// notifies only interested processes: workers whose rows say that they are idle, workers of
// tasks that were asked to cancel, and callers that wait for tasks and jobs or follow events.
// The processes of such callers hold a shared advisory lock.
//
// A worker announces that it is idle after a claim that found nothing, and claims once more
// when its row says so, because earlier commits were not notified to it. A notification is a
// hint. In addition each process polls once a second, in one statement, for the changes that
// its workers and callers wait for. Polling also works through a pooler, where there is no
// session to listen in.
package notices
