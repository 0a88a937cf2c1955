package rules

// MaxMoves is how many rows one transaction moves beside those that its caller
// named: what exceeds it becomes a chore, which is worked off in further
// transactions of that size ([store.ChoreRow]). That many take SQLite some 50 ms,
// for which heartbeats and other calls wait. Tests set it lower.
var MaxMoves = 500
