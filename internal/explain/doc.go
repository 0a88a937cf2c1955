// Package explain turns recorded values into English sentences about task and job states, attempts, decisions,
// operator commands and waits. The command line and the monitor of a running job share these words.
//
// Every function is pure: values in, text out. The package reads no store and no clock ([Clock] has the instant as a
// field). Colours and layout belong to the views. Texts recorded by handlers, producers and operators are made
// printable before they become part of a sentence.
//
// Texts have three lengths:
//
//   - a word or two ([Status]), or a note of a few words ([Clock.Note],
//     [Waits], [Clock.Cancelled]), for tables and trees,
//   - the end of a sentence that begins with the task or job
//     ([Clock.TaskState], [Clock.JobState], [Clock.Event]),
//   - a whole [Explanation], with causes, past and possible actions.
package explain
