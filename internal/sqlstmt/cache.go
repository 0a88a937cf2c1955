package sqlstmt

// Cache holds values that many rows of a connection share. It is used by one goroutine at a
// time.
type Cache struct {
	names map[string]string // types, queues, workers: few, in every row

	packed   map[commonOptions]string
	unpacked map[string]taskOptions
}

// maxRemembered is the maximum size of each map.
const maxRemembered = 4096

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{names: make(map[string]string), packed: make(map[commonOptions]string), unpacked: make(map[string]taskOptions)}
}

// intern returns b as a string, the same string for equal bytes.
func (c *Cache) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := c.names[string(b)]; ok {
		return s
	}
	if len(c.names) >= maxRemembered {
		clear(c.names)
	}
	s := string(b)
	c.names[s] = s
	return s
}
