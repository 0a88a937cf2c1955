package httpapi

// Gatherer is of no use in a browser, where nobody reads the metrics.
type Gatherer interface{ gather() }

func storeMetrics(*Config) Gatherer { return nil }

func (c *call) metrics() error {
	return noRoute.of("a program in a browser has no metrics: GET /v1/stats has the counts")
}
