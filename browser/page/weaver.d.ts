/** Where the program runs. */
export interface State {
  /** "starting": no tab runs it yet; "failed": it cannot run, and text says why. */
  kind: "starting" | "running" | "failed";
  /** It runs, or is about to run, in this tab. */
  here: boolean;
  text: string;
}

export interface Options {
  /** The folder of the program's files; default: the folder of this module. Relative to the page. */
  base?: string;
  /** A capsule to show instead of the program's own tasks: what openCapsule returned. */
  capsule?: string;
}

/** A task as the API describes it (GET /openapi.json). */
export interface Task {
  id: string;
  task_type: string;
  state: string;
  [field: string]: unknown;
}

/** An answer of the API without success has its status and its problem (RFC 9457). */
export interface Refusal extends Error {
  status: number;
  problem?: { type: string; title: string; detail?: string };
}

export interface Weaver extends EventTarget {
  readonly state: State;
  readonly output: string;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  json<T = unknown>(method: string, path: string, body?: unknown): Promise<T>;
  enqueue(type: string, input: unknown, options?: Record<string, unknown>): Promise<Task>;
  task(id: string): Promise<Task>;
  signal(id: string, name: string, payload?: unknown, key?: string): Promise<Task>;
  watch<T = unknown>(topics: string[], each: (rows: T[], topic: string) => void): () => void;
  persist(): Promise<boolean>;
  backup(): Promise<File>;
  restore(file: Blob, options?: { replace?: boolean }): Promise<void>;
  check(): Promise<{ tasks: number; violations: string[] }>;
  addEventListener(type: "state", listener: (ev: CustomEvent<State>) => void): void;
  addEventListener(type: "output", listener: (ev: CustomEvent<string>) => void): void;
  addEventListener(type: "refused", listener: (ev: CustomEvent<string>) => void): void;
}

/** Connects to the program whose files lie beside this module. A page has one connection per program. */
export function connect(options?: Options): Weaver;

/** Stores a capsule (`weaver export`) in the private files of the browser, and returns its name for connect. */
export function openCapsule(file: File): Promise<string>;

/** Deletes a capsule that no tab shows. */
export function closeCapsule(name: string): Promise<void>;
