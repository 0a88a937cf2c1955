package weaver

import "encoding/json"

// CheckInput returns what enqueueing a task of a type would say of an encoded input of a
// schema version, ErrInvalidInput. It is nil for a type that the client does not know: an
// Engine knows those of its handlers, another client those of ClientConfig.Handlers.
func (c *Client) CheckInput(taskType string, schemaVersion int, input json.RawMessage) error {
	if h, ok := c.known[taskType]; ok {
		return h.CheckInput(input, schemaVersion)
	}
	return nil
}

// knownTypes are the handlers of which each checks inputs of its type.
func knownTypes(handlers []Handler) map[string]Handler {
	known := make(map[string]Handler, len(handlers))
	for _, h := range handlers {
		known[h.name] = h
	}
	return known
}
