package cli

// StorePath returns the file that a store URL names.
func StorePath(given string) (string, error) { return storePath(given) }

// ShownStore returns a store URL as messages have it.
func ShownStore(given string) (string, error) {
	p, err := placeOf(given)
	if err != nil {
		return "", err
	}
	return p.shown(), nil
}

// ParseLabels reads KEY=VALUE pairs.
func ParseLabels(args ...string) (map[string]string, error) { return parseLabels(args) }
