//go:build race

package soak_test

import "time"

// Under the race detector everything takes several times as long.
var shortStorm = stormSize{kills: 5, tasks: 100, nodes: 20, visits: 3, pause: 40 * time.Millisecond}

var shortLayers = layersSize{layers: 15, width: 10, kills: 2}

const shortRun = 10 * time.Second

// lastMoment is when a worker is killed whose plan found nothing to do.
const lastMoment = 4 * time.Second
