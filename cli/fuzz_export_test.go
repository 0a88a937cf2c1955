package cli

// StorePath returns the file that a store URL names.
func StorePath(given string) (string, error) { return storePath(given) }

// ParseLabels reads KEY=VALUE pairs.
func ParseLabels(args ...string) (map[string]string, error) { return parseLabels(args) }
