//go:build !race

package soak_test

import "time"

var shortStorm = stormSize{kills: 10, tasks: 250, nodes: 40, visits: 8, pause: 40 * time.Millisecond}

var shortLayers = layersSize{layers: 25, width: 20, kills: 3}

const shortRun = 6 * time.Second

// lastMoment is when a worker is killed whose plan found nothing to do.
const lastMoment = time.Second
