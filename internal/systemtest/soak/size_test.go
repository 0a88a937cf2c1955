package soak_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// stormSize is how much work a storm has.
type stormSize struct {
	kills  int           // of workers
	tasks  int           // that the producer enqueues, one by one or some at once
	nodes  int           // of the job
	visits int           // that each visitor of a process makes
	pause  time.Duration // the longest a step function takes
	calm   time.Duration // how much longer than a small size the rest may take, after the last kill
}

// The sizes of `make test`: each planted defect is found in each of 20 runs
// (internal/mutation/guards/proofs.txt).
var (
	shortStorm  = stormSize{kills: 5, tasks: 100, nodes: 20, visits: 3, pause: 40 * time.Millisecond}
	shortLayers = layersSize{layers: 15, width: 10, kills: 2}
)

const shortRun = 3 * time.Second

// fullStorm is what WEAVER_STORM=full asks for.
var fullStorm = stormSize{kills: 200, tasks: 5000, nodes: 500, visits: 20, pause: 40 * time.Millisecond, calm: 20 * time.Minute}

func sizeOfStorm(t *testing.T) stormSize {
	t.Helper()
	switch size := os.Getenv("WEAVER_STORM"); size {
	case "":
		return shortStorm
	case "full":
		return fullStorm
	default:
		t.Fatalf("WEAVER_STORM is %q: want full, or nothing", size)
		return stormSize{}
	}
}

// seedOfStorm is that of the schedule: when which process is killed.
func seedOfStorm(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("WEAVER_STORM_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("WEAVER_STORM_SEED: %v", err)
	}
	return seed
}

// lengthOfRun is how long the long run takes.
func lengthOfRun(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("WEAVER_SOAK")
	if text == "" {
		return shortRun
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < shortRun {
		t.Fatalf("WEAVER_SOAK is %q: want a duration of at least %s", text, shortRun)
	}
	return d
}
