// Package disktest is a disk that fails on command, for tests of stores that keep files.
// It is a VFS between SQLite and the operating system's files. Locks, shared memory and
// reads are the system's own. Each change of a file passes through a Plan, which can
// reject it, completely or in its middle.
//
// A Disk also records writes and syncs. From that History a Platter builds the files
// after a power failure: the synced changes, and of the unsynced ones nothing,
// everything, or any part, torn between sectors of 512 bytes.
//
// Invariants:
//
//   - Nothing is ever really synced: a Disk's guarantees are those of its History.
//   - Changes of all files of a Disk have one order, that of the History.
//   - A file's bytes are those of the operating system: another process and another VFS
//     read the same.
//
// It does not fail reads, does not lose the names of new files, and does not survive the
// process.
package disktest
