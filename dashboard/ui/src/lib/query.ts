// The query language of tasks, as far as the page takes a query apart: state:failed "no such card".

export const states = ["pending", "ready", "running", "blocked", "succeeded", "failed", "cancelled"];

/** The qualifiers, each with what it selects. */
export const qualifiers: [string, string][] = [
  ["state:", "the state; several with commas"],
  ["type:", "the task type; a prefix as acme.*"],
  ["queue:", "the queue"],
  ["error:", "the kind of the last error"],
  ["waiting:", "what it waits for"],
  ["label.", "a label: label.team=pay"],
  ["created>", "enqueued after a time or an age: created>-2h"],
  ["created<", "enqueued before it"],
  ["input.", "a value of the input: input.order.id=42"],
  ["output.", "a value of the output"],
  ["key:", "an idempotency or concurrency key"],
  ["node:", "the name in its job"],
  ["job:", "the job"],
  ["parent:", "the task that stored it"],
  ["undo:", "open, blocked, failed or abandoned"],
];

/** A value of a query, in quotes if it needs them. */
export function quoted(s: string): string {
  return /^[\w.@/-]+$/.test(s) ? s : `"${s.replace(/[\\"]/g, "\\$&")}"`;
}

/** The terms of a query, each with its quotes. */
export function terms(q: string): string[] {
  return q.match(/(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+/g) ?? [];
}

/** The query without the term at a place. */
export const without = (q: string, at: number): string => terms(q).filter((_, i) => i !== at).join(" ");

/** The states of a query's term state:…, or none. */
export function statesOf(q: string): string[] {
  const t = terms(q).find((t) => t.startsWith("state:"));
  return t ? t.slice(6).split(",").filter(Boolean) : [];
}

/** The query with these states. */
export function withStates(q: string, list: string[]): string {
  const others = terms(q).filter((t) => !t.startsWith("state:"));
  return (list.length ? ["state:" + list.join(","), ...others] : others).join(" ");
}
