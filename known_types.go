package weaver

import "encoding/json"

// CheckInput returns the error, ErrInvalidInput, with which an enqueue would refuse an encoded input
// of a schema version. It is nil for a type unknown to the client: an Engine knows the types of its
// handlers, another client those of ClientConfig.Handlers.
func (c *Client) CheckInput(taskType string, schemaVersion int, input json.RawMessage) error {
	if h, ok := c.known[taskType]; ok {
		return h.CheckInput(input, schemaVersion)
	}
	return nil
}

// knownTypes returns one handler per type to check inputs with.
func knownTypes(handlers []Handler) map[string]Handler {
	known := make(map[string]Handler, len(handlers))
	for _, h := range handlers {
		known[h.name] = h
	}
	return known
}
