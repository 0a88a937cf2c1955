// Package explain turns recorded values into English: task and job states,
// attempts, decisions, operator commands and waits become sentences. The
// command line and the monitor of a running job use the same words, because
// both take them from here.
//
// Every function is pure: values in, text out. The package reads no store and
// no clock ([Clock] has the instant as a field), and knows no terminal:
// colours and layout belong to the views. Texts that were recorded by
// handlers, producers and operators are made printable before they become
// part of a sentence.
//
// There are three lengths:
//
//   - a word or two ([Status]), and a note of a few words ([Clock.Note],
//     [Waits], [Clock.Cancelled]), for tables and trees,
//   - the end of a sentence that begins with the task or job
//     ([Clock.TaskState], [Clock.JobState], [Clock.Event]),
//   - a whole [Explanation], with causes, past and possible actions.
package explain
