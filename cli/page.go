package cli

import "github.com/goweaver/weaver/store"

// fill reads pages until it has limit rows or all rows. A page of the store may be short if many rows do not match.
func fill[T any](limit int, after string, read func(limit int, after string) ([]T, string, error)) ([]T, string, error) {
	var rows []T
	for limit = store.PageLimit(limit); ; {
		page, next, err := read(limit-len(rows), after)
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, page...)
		if next == "" || len(rows) >= limit {
			return rows, next, nil
		}
		after = next
	}
}
