// Package linearizability records concurrent calls of claim, heartbeat, finish,
// release and reap on every store, and has porcupine search for an order of
// them that explains every answer. Broken stores are its controls.
package linearizability
