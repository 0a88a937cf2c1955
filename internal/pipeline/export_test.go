package pipeline

// Keys returns the keys of each level of a file.
func Keys() map[string][]string {
	keys := make(map[string][]string, len(levels))
	for _, l := range levels {
		keys[l.name] = l.keys
	}
	return keys
}
