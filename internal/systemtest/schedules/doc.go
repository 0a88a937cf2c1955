// Package schedules fires five scheduled times per second in eight processes, one of which is killed each second, and
// all of them once. Every time is fired or skipped once and by its rule, and none early.
package schedules
