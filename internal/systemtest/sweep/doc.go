// Package sweep runs real engine work once for each of its store calls, with one fault at that call: an error before
// it, a lost reply after it, or the death of the process. The work must end as it does without a fault.
package sweep
