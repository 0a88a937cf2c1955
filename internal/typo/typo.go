// Package typo measures the distance between two words, to suggest the word that a user meant.
package typo

// Distance returns the number of bytes to add, drop or replace to turn one word into the other (Levenshtein). It
// stops counting above the limit and then returns limit+1.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return limit + 1
		}
	}
	return min(row[len(b)], limit+1)
}
