package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// Digest returns the hexadecimal SHA-256 of the definitions of all tasks and the
// budget. Two files with the same digest create the same job, in any directory.
// Comments, descriptions, formatting, aliases, the order of keys, tasks and needs,
// and the files that match a foreach_glob do not count.
func (p *Pipeline) Digest() string {
	byName := make(map[string]*Task, len(p.Tasks))
	for _, t := range p.lasting() {
		byName[t.Name] = t
	}
	sum := sha256.New()
	// Change this line with every change of the encoding.
	sum.Write([]byte("weaver pipeline 1\n"))
	whole := map[string]any{
		"name":                  p.Name,
		"max_attempts_per_task": p.Budget.MaxAttemptsPerTask,
		"max_duration_ns":       p.Budget.MaxDuration,
	}
	for key, n := range map[string]int{
		"max_total_attempts": p.Budget.MaxTotalAttempts, "max_cost": p.Budget.MaxCost,
		"max_repairs": p.Budget.MaxRepairs, "max_no_progress": p.Budget.MaxNoProgress, "max_parallel": p.Parallel,
	} {
		if n != 0 { // keeps the digest of files without them
			whole[key] = n
		}
	}
	sum.Write(canonical(whole))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		d := p.definition(byName[name], "")
		d.Needs = slices.Sorted(slices.Values(byName[name].lastingNeeds()))
		d.After = nil // undos only
		sum.Write(canonical(d))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// canonical returns v as one line of JSON with sorted keys at every level and
// numbers as written.
func canonical(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error() + "\n") // not from Parse: its Input is invalid JSON
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
