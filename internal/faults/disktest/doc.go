// Package disktest is a disk that fails on command, for tests of stores that
// keep files. It sits between SQLite and the operating system's files as a
// VFS: locks, shared memory and reads are the system's own, and what changes a
// file passes through a Plan that can refuse it, wholly or in its middle.
//
// A Disk also remembers what was written and what was synced. From that
// History a Platter builds the files as a power failure would leave them: what
// was synced, and of the rest nothing, everything, or any part, torn between
// sectors of 512 bytes.
//
// What always holds:
//
//   - Nothing is ever really synced: a Disk's promises are its History's.
//   - Changes of all files of a Disk have one order, that of the History.
//   - A file's bytes are those that the operating system has: another process
//     and another VFS read the same.
//
// It does not fail reads, does not lose the names of new files, and does not
// survive the process.
package disktest
