package sqlstmt

// Cache remembers values that many rows of a connection have in common. It is
// used by one goroutine at a time.
type Cache struct {
	names map[string]string // types, queues, workers: few, in every row

	packed   map[commonOptions]string
	unpacked map[string]taskOptions
}

// maxRemembered bounds what is remembered of each kind.
const maxRemembered = 4096

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{names: make(map[string]string), packed: make(map[commonOptions]string), unpacked: make(map[string]taskOptions)}
}

// intern returns b as a string, the same one for equal bytes.
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
