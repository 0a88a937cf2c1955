package task

import (
	"fmt"
	"regexp"
)

// MaxTypeName is the maximum length of a task type name, in bytes.
const MaxTypeName = 255

var typeName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+){2}\.v[1-9][0-9]*$`)

// CheckTypeName returns an error unless name has the form
// owner.domain.action.vN.
func CheckTypeName(name string) error {
	switch {
	case len(name) > MaxTypeName:
		return fmt.Errorf("task type name is %d bytes long, at most %d are allowed: %.40q…", len(name), MaxTypeName, name)
	case !typeName.MatchString(name):
		return fmt.Errorf("task type name %q is not owner.domain.action.vN: four parts of a-z, 0-9 and _ joined by dots, the first starting with a letter, the last a version such as v1 (example: acme.billing.charge.v1)", name)
	}
	return nil
}
