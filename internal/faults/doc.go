// Package faults is the tree of tests' tools around a store. It has no code itself.
//
//	storehook    observes and changes the calls that reach a store
//	faultstore   injects errors, lost replies and the death of the process at chosen calls
//	disktest     a disk that fails on command, and its files after a power failure
//	refusetest   the engine's write paths on a store that refuses one write permanently
package faults
