// Package orders sends orders to a partner that times out after success, fails and drops connections, while order
// workers are killed and the database is restarted. What the partner executed must equal what the ledger says, and
// no entry may be settled twice.
package orders
