package rules

// MaxMoves is the maximum number of rows that one transaction moves in addition to the rows
// named by its caller. The rest becomes a chore, which further transactions of this size work
// off ([store.ChoreRow]). SQLite takes about 50 ms for 500 rows, during which heartbeats and
// other calls wait. Tests set it lower.
var MaxMoves = 500
