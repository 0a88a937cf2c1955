// Package ops holds the requests and results of a Client's operator verbs: queries and searches, bulk
// verbs, statistics, and the results of a prune, a forget or a cancel of a job. It neither reads nor
// writes a store; the methods of weaver.Client do.
package ops
