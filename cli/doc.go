// Package cli is the whole weaver command as a package, so that a program
// with task types of its own can be the same command:
//
//	func main() { cli.Main(cli.App{Name: "acme"}) }
//
// Its verbs read a store and act on it for people: they list, show and
// explain tasks and jobs, retry, cancel and unblock them, pause queues,
// migrate and check the store. They run no tasks.
//
// What always holds:
//
//   - Verbs that do not create a store never do: a file that is not there is
//     an error, not an empty list.
//   - Results go to the standard output, everything else to the standard
//     error. With -o json a result is one JSON object with the field names of
//     package task.
//   - Text is for people: colours only on a terminal, control characters of
//     recorded texts never reach it.
//   - The exit code is 0 when it is done, 1 when the work failed or doctor
//     found violations, 2 when the command line or what it names is wrong, and
//     3 when the store cannot be used.
package cli
