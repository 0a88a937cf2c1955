// Package linearizability records concurrent calls of claim, heartbeat, finish, release and reap on every store.
// Porcupine then searches for an order of the calls that explains every answer. Broken stores serve as controls.
package linearizability
