package pipeline

// Keys returns the keys that each level of a file knows.
func Keys() map[string][]string {
	keys := make(map[string][]string, len(levels))
	for _, l := range levels {
		keys[l.name] = l.keys
	}
	return keys
}
