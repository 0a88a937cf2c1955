// Package docs holds the guides, and tests that compile and run their Go code. It exports
// nothing and belongs to no program.
package docs
