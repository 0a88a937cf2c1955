// Package calendar computes when a schedule fires: by a cron expression in a time zone, or every so often.
//
// A [Spec] is the stored form, a [Recurrence] the compiled one. Fires are nominal instants, in whole seconds of UTC.
// The package reads no clock and keeps no state: what fired already, catch-up and overlaps are the caller's.
//
// # Cron expressions
//
// An expression has five fields: minute (0-59), hour (0-23), day of month (1-31), month (1-12 or JAN-DEC) and day of
// week (0-7 or SUN-SAT; 0 and 7 are Sunday). A field is a list of elements, separated by commas:
//
//   - 7  MON        every value; one value
//     8-17  MON-FRI    a range
//     */15  8-18/2     every n-th value of a range, from its first
//     5/15             the same as 5-59/15
//     ?                in the fields of days: the same as *
//     L  L-3           day of month: the last day; three days before it
//     15W  LW          day of month: the day from Monday to Friday nearest to the 15th, within its month; the last one
//     FRI#2  FRIL      day of week: the second Friday of the month; the last one
//
// If neither field of days begins with * or ?, a date matches either of them, as in crontab(5). Otherwise it matches
// both. @hourly, @daily or @midnight, @weekly, @monthly and @yearly or @annually stand for "0 * * * *", "0 0 * * *",
// "0 0 * * 0", "0 0 1 * *" and "0 0 1 1 *".
//
// # When clocks change
//
// A gap is the civil time that a zone skips when its clocks go forward, a fold the civil time that it has twice when they
// go back. Two rules hold, whatever the length of a gap or fold is:
//
//   - Gap: if an expression matches a time in the gap, it fires once at the first instant after the gap. An hour field
//     that matches all 24 hours makes an exception: its times in the gap have no fire.
//   - Fold: a time in the fold fires at its first occurrence. If the minute or the hour field is a wildcard, it fires at
//     both. A wildcard field has an element *, */n or a range of all its values.
//
// In Europe/Berlin, where 02:00-03:00 is skipped in March and repeated in October:
//
//	expression      day in March                 day in October
//	30 2 * * *      03:00                        the first 02:30
//	30 1-3 * * *    01:30 03:00 03:30            01:30, the first 02:30, 03:30
//	*/30 2 * * *    03:00                        02:00 02:30 and again 02:00 02:30
//	0 */2 * * *     00:00 03:00 04:00 …          00:00, 02:00 twice, 04:00 …
//	0 * * * *       01:00 03:00 …: 23 times      25 times
//	*/15 * * * *    92 times                     100 times
//
// So no day that an expression names passes without a fire, and what runs all the time keeps its pace.
//
// # The time zone database
//
// Zones come from the system's database, and from the copy of package time/tzdata where the system has none. That copy
// adds 400 KB to a program. [Recurrence.ZoneVersion] identifies the rules of one zone. Store it with a next fire: if it
// differs later, the rules of the zone have changed, and the next fire has to be computed again.
package calendar
