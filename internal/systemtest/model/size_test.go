package model_test

// modelChecks is how many sequences TestModel runs: with the seed of `make test` each
// planted defect is found among them (internal/mutation/guards/proofs.txt).
const modelChecks = 60

// postgresChecks is the same on PostgreSQL, where each takes ten times as long.
const postgresChecks = 4
