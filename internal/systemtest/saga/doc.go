// Package saga runs orders whose charge and shipping services fail and answer late, while workers are killed and
// operators cancel and retry. For every order, the charges without a refund equal the shipments without a recall.
package saga
