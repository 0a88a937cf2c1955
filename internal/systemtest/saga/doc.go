// Package saga has orders charged and shipped by partners that fail and answer late, while
// the workers are killed and operators cancel and retry: what was charged and not refunded
// is what was shipped and not called back, for every order.
package saga
