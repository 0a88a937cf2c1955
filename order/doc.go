// Package order sends requests to an outside system and settles each of them once.
//
// An application accepts a request under an idempotency key: one transaction writes the
// ledger entry (accepted) and the outbox row (pending). A Worker claims rows under leases,
// sends them through an Adapter, and settles them: the ledger first, then the row. The
// partner gets each request at least once, always with the same key; the application reads
// exactly one settled result per key. The protocol is docs/orders.md.
//
// Invariants:
//
//   - A key has one ledger entry and one outbox row in a namespace.
//   - Only the holder of the row's token writes a negative result. A positive answer of the
//     partner settles the key whatever the token.
//   - What may have been sent and has no answer is unknown. It is sent again with the same
//     key, or a Reconciler asks the partner; it is never reported as failed without saying so.
//   - A settled key changes only by a requeue, or by a positive answer after it was given up
//     as unknown.
//
// The core works on any request body. Package order has two profiles: Orders (OrderRequest
// v1.1) and Webhooks. The package knows no database: stores implement Store.
package order
