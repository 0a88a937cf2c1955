package httpapi

// Gatherer is empty in a browser, which has no endpoint for metrics.
type Gatherer interface{ gather() }

func storeMetrics(*Config) Gatherer { return nil }

func (c *call) metrics() error {
	return noRoute.of("a program in a browser has no metrics: GET /v1/stats has the counts")
}
