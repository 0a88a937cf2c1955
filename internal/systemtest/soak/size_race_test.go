//go:build race

package soak_test

import "time"

// lastMoment is the time of the kill of a worker whose plan did not trigger.
const lastMoment = 4 * time.Second
