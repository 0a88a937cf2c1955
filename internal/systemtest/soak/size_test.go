package soak_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// stormSize is the amount of work in a storm.
type stormSize struct {
	kills  int           // of workers
	tasks  int           // enqueued by the producer, one by one or in bundles
	nodes  int           // of the job
	visits int           // made by each visitor of a process
	pause  time.Duration // maximum duration of a step function
	calm   time.Duration // extra time, compared with a small size, after the last kill
}

// The sizes of `make test`: each planted defect is found in each of 20 runs (internal/mutation/guards/proofs.txt).
var (
	shortStorm  = stormSize{kills: 5, tasks: 100, nodes: 20, visits: 3, pause: 40 * time.Millisecond}
	shortLayers = layersSize{layers: 15, width: 10, kills: 2}
)

const shortRun = 3 * time.Second

// fullStorm is the size for WEAVER_STORM=full.
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

// seedOfStorm returns the seed of the schedule of kills.
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

// lengthOfRun returns the duration of the long run.
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
