package cli

// StorePath returns the file that a store URL names.
func StorePath(given string) (string, error) { return storePath(given) }

// ShownStore returns a store URL in the form used in messages.
func ShownStore(given string) (string, error) {
	p, err := placeOf(given)
	if err != nil {
		return "", err
	}
	return p.shown(), nil
}

// ParseLabels parses KEY=VALUE pairs.
func ParseLabels(args ...string) (map[string]string, error) { return parseLabels(args) }
