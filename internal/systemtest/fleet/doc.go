// Package fleet runs a whole deployment, an API, four workers and two publishers as processes on PostgreSQL, Redis and
// S3, and kills and restarts all of it while clients enqueue. It contains only tests.
package fleet
