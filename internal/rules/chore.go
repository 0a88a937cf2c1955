package rules

// MaxMoves is how many rows one transaction moves beside those that its caller
// named: what exceeds it becomes a chore, which is worked off in further
// transactions of that size ([store.ChoreRow]). Tests set it lower.
var MaxMoves = 1000
