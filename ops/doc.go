// Package ops holds the requests and answers of a Client's verbs for operators: queries
// and searches, verbs of many tasks, statistics, and what a prune, a forget or a cancel
// of a job did. It reads and writes no store; the methods of weaver.Client do.
package ops
