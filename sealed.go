package weaver

import (
	"fmt"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/seal"
)

// Codec seals values at rest: aesgcm.New, aesgcm.Open. See package codec.
type Codec = codec.Codec

// stillSealed returns the error for a value that could not be opened.
func stillSealed(what string, id TaskID, value []byte) error {
	if err := seal.Failure(value); err != nil {
		return fmt.Errorf("the %s of task %s cannot be read: %w", what, id, err)
	}
	return nil
}
