package builtin

// Mask masks secrets in a stream that comes in pieces.
func Mask(secrets []string, pieces ...string) string {
	m := newMask(secrets)
	out := ""
	for _, p := range pieces {
		out += string(m.next([]byte(p)))
	}
	return out + string(m.rest())
}

// Held returns the number of bytes that a mask holds back after a stream.
func Held(secrets []string, stream string) int {
	m := newMask(secrets)
	m.next([]byte(stream))
	return len(m.held)
}

// ParseEnv parses a file of variables and returns "NAME=VALUE" for each.
func ParseEnv(text string) ([]string, error) {
	vars, err := parseEnv(text)
	var pairs []string
	for _, v := range vars {
		pairs = append(pairs, v.name+"="+v.value)
	}
	return pairs, err
}
