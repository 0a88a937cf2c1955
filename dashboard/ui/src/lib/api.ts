// Requests to the API below the dashboard's path.
import { signal } from "@preact/signals";
import { root } from "./config";

export interface ProblemError {
  pointer?: string;
  parameter?: string;
  column?: number;
  detail: string;
  meant?: string;
  words?: string[];
}

/** A response without success (RFC 9457), or a request without a response (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly type = "",
    readonly errors: ProblemError[] = [],
    readonly retryAfter = 0,
  ) {
    super(detail || title);
  }

  /** The name in `type`, as "invalid-input". */
  get kind(): string {
    return this.type.slice(this.type.indexOf("#") + 1);
  }
}

/** Whether the API refused the credentials, so that the page shows the login. */
export const signedOut = signal(false);

export type Params = Record<string, string | number | boolean | string[] | undefined | null>;

/** The URL of an operation. Empty parameters are left out. */
export function apiURL(path: string, params: Params = {}): string {
  const url = new URL(path, root);
  for (const [name, value] of Object.entries(params)) {
    for (const v of Array.isArray(value) ? value : [value]) {
      if (v !== undefined && v !== null && v !== "") url.searchParams.append(name, String(v));
    }
  }
  return url.href;
}

/** A part of a path: also names with slashes. */
export const segment = encodeURIComponent;

export interface Options {
  params?: Params;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

async function problemOf(res: Response): Promise<Problem> {
  let p: Partial<Problem> & { detail?: string } = {};
  if ((res.headers.get("Content-Type") ?? "").includes("json")) p = await res.json().catch(() => ({}));
  const detail = p.detail ?? (res.status >= 500 ? "The server or a proxy before it failed; try again." : "");
  return new Problem(res.status, p.title ?? `The answer was ${res.status} ${res.statusText}.`, detail, p.type, p.errors, Number(res.headers.get("Retry-After") ?? 0));
}

/** Sends a request. It throws a Problem. */
export async function send(method: string, path: string, opts: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...opts.headers };
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store", signal: opts.signal ?? null };
  if (opts.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = typeof opts.body === "string" ? opts.body : JSON.stringify(opts.body);
  }
  let res: Response;
  try {
    res = await fetch(apiURL(path, opts.params), init);
  } catch (err) {
    if (opts.signal?.aborted) throw err;
    throw new Problem(0, "The server did not answer.", "The server did not answer. Check the connection; the page tries again by itself where it can.");
  }
  if (!res.ok) {
    if (res.status === 401) signedOut.value = true;
    throw await problemOf(res);
  }
  return res;
}

async function json<T>(res: Promise<Response>): Promise<T> {
  const r = await res;
  return r.status === 204 ? (undefined as T) : ((await r.json()) as T);
}

export const get = <T>(path: string, params?: Params, signal?: AbortSignal): Promise<T> => json<T>(send("GET", path, { params: params ?? {}, signal }));
export const post = <T>(path: string, body: unknown, opts: Options = {}): Promise<T> => json<T>(send("POST", path, { ...opts, body }));
export const put = <T>(path: string, body: unknown, opts: Options = {}): Promise<T> => json<T>(send("PUT", path, { ...opts, body }));
export const del = <T>(path: string, opts: Options = {}): Promise<T> => json<T>(send("DELETE", path, opts));
