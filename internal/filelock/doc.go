// Package filelock has the locks of files with which processes of one machine tell that
// they live. A lock belongs to the open file, not to the process: two openings in one
// process exclude each other. It ends with the file, or with the process, however that
// ends.
package filelock
