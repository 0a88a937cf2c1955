//go:build race

package soak_test

import "time"

// lastMoment is when a worker is killed whose plan found nothing to do.
const lastMoment = 4 * time.Second
