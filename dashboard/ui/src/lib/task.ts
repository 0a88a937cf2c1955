// Facts of a task that several components need.
import { segment } from "./api";
import { root } from "./config";
import { namespace } from "./session";
import type { Task } from "./types";

export const ended = (t: Task): boolean => t.state === "succeeded" || t.state === "failed" || t.state === "cancelled";

/** Whether its undo runs, waits, is blocked or was given up. */
export const undoing = (t: Task): boolean => !!t.undo && !t.undo["abandoned"] && (!ended(t) || !!t.undo["gave_up"]);

/** Whether its undo was given up and nobody has dealt with what remains. */
export const undoFailed = (t: Task): boolean => t.error?.kind === "undo_failed" || (!!t.undo && !!t.undo["gave_up"]);

/** The ETag of the task as the API writes it: epoch and microseconds of the last change. */
export function etag(t: Task): string {
  const [, seconds = "", fraction = ""] = /^(.*?)(?:\.(\d+))?Z$/.exec(t.updated_at) ?? [];
  return `"${t.lease_epoch}-${(Date.parse(seconds + "Z") / 1000) * 1e6 + Number(fraction.slice(0, 6).padEnd(6, "0"))}"`;
}

/** A word of a shell's command line. */
export const word = (s: string): string => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", "'\\''")}'`);

/** A command line of weaver in this namespace. */
export const cli = (...args: string[]): string => ["weaver", ...(namespace.peek() && namespace.peek() !== "default" ? ["--namespace", namespace.peek()] : []), ...args].map(word).join(" ");

/** A command line of curl for a request of the API. */
export const curl = (method: string, path: string, body?: string): string =>
  ["curl", ...(method === "GET" ? [] : ["-X", method]), ...(body === undefined ? [] : ["--json", body]), new URL(path, root).href].map(word).join(" ");

/** The name of a task for headings: its name in its job, or its type. */
export const nameOf = (t: { node?: string | undefined; task_type: string }): string => t.node ?? t.task_type;

export const taskPath = (id: string, rest = ""): string => "v1/tasks/" + segment(id) + rest;
