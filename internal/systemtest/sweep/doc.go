// Package sweep runs real engine work once for every store call that it makes,
// with one fault at that call: an error before it, a lost reply after it, or
// the death of the process. The work must end as it does without a fault.
package sweep
