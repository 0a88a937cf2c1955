package builtin

// Wanted is Until.wanted.
func Wanted(u *Until) string { return u.wanted() }
