package model_test

// modelChecks is the number of sequences in TestModel. With the seed of `make test` they find each planted defect
// (internal/mutation/guards/proofs.txt).
const modelChecks = 60

// postgresChecks is the number on PostgreSQL, where a sequence takes ten times as long.
const postgresChecks = 4
