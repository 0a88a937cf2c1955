package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// Digest is the hexadecimal SHA-256 of what the pipeline runs and how: two
// files with the same digest make the same job, in any directory. Comments,
// descriptions, formatting, aliases, and the order of keys, of tasks and of
// needs do not count, and neither do the files that a foreach_glob finds.
func (p *Pipeline) Digest() string {
	byName := make(map[string]*Task, len(p.Tasks))
	for _, t := range p.lasting() {
		byName[t.Name] = t
	}
	sum := sha256.New()
	// This line changes whenever the encoding does.
	sum.Write([]byte("weaver pipeline 1\n"))
	whole := map[string]any{
		"name":                  p.Name,
		"max_attempts_per_task": p.Budget.MaxAttemptsPerTask,
		"max_duration_ns":       p.Budget.MaxDuration,
	}
	for key, n := range map[string]int{
		"max_total_attempts": p.Budget.MaxTotalAttempts, "max_cost": p.Budget.MaxCost,
		"max_repairs": p.Budget.MaxRepairs, "max_no_progress": p.Budget.MaxNoProgress,
	} {
		if n != 0 { // files without them keep their digest
			whole[key] = n
		}
	}
	sum.Write(canonical(whole))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		d := p.definition(byName[name], "")
		d.Needs = slices.Sorted(slices.Values(byName[name].lastingNeeds()))
		d.After = nil // all undos
		sum.Write(canonical(d))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// canonical is a line of JSON with sorted keys, also inside of inputs, and
// numbers as they are written.
func canonical(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error() + "\n") // a Pipeline that is not from Parse, with an Input that is no JSON
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var sorted any
	if err := dec.Decode(&sorted); err == nil {
		if again, err := json.Marshal(sorted); err == nil {
			raw = again
		}
	}
	return append(raw, '\n')
}
