// The live content of topics, as signals.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Request } from "../stream";
import { get, Problem } from "./api";
import { config, root } from "./config";
import { applyUpdate, Streamer, type Connection, type Message, type TopicState } from "./streamer";
import { clockOffset } from "./time";

export interface Topic<T> {
  rows: T[]; // tasks newest first, others by id
  ids: string[]; // of the rows
  loaded: boolean;
  next: string | undefined; // the cursor of the next page
  leftOut: number;
  problem: Problem | null;
}

export const connection = signal<Connection>({ mode: "connecting", status: 0, detail: "", at: Date.now(), offset: 0, retryAt: 0, opened: 0 });

interface Followed {
  users: number;
  state: TopicState;
  view: Signal<Topic<unknown>>;
  dirty: boolean;
  dropping?: ReturnType<typeof setTimeout> | undefined;
}

const followed = new Map<string, Followed>();

const empty = (): Topic<unknown> => ({ rows: [], ids: [], loaded: false, next: undefined, leftOut: 0, problem: null });

let toWorker: ((r: Request) => void) | null = null;

function receive(m: Message): void {
  if (m.kind === "connection") {
    const was = connection.peek().mode;
    connection.value = m.connection;
    if (Math.abs(m.connection.offset - clockOffset.peek()) > 250) clockOffset.value = m.connection.offset;
    // The refusal may be older than the present login. A second one shows the login page.
    if (m.connection.mode === "refused" && m.connection.status === 401 && was !== "refused") get("v1/me").then(reconnect, () => undefined);
    return;
  }
  for (const u of m.updates) {
    const f = followed.get(u.topic);
    if (!f) continue;
    applyUpdate(f.state, u);
    f.dirty = true;
  }
  if (document.hidden) setTimeout(show, 250);
  else requestAnimationFrame(show);
}

/** Publishes the changed topics, once a frame of the screen. */
function show(): void {
  for (const [topic, f] of followed) {
    if (!f.dirty || (!f.state.loaded && !f.state.problem)) continue;
    f.dirty = false;
    const rows = [...f.state.rows.values()];
    if (topic.startsWith("tasks:") || topic === "inbox") rows.sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
    else rows.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    const p = f.state.problem;
    f.view.value = {
      rows: rows.map((r) => r.row ?? { id: r.id }),
      ids: rows.map((r) => r.id),
      loaded: f.state.loaded,
      next: f.state.next,
      leftOut: f.state.leftOut,
      problem: p ? new Problem(p.status, p.title, p.detail ?? "", p.type, p.errors) : null,
    };
  }
}

function follow(): void {
  toWorker?.({ kind: "follow", topics: [...followed.keys()] });
}

/** Connects to the shared worker, or streams in this page where there is none. */
export function startLive(): void {
  if (toWorker) return;
  if (typeof SharedWorker === "function") {
    try {
      const worker = new SharedWorker(new URL("assets/" + config.stream, root), { type: "module", name: "weaver" });
      worker.port.onmessage = (ev: MessageEvent<Message>) => receive(ev.data);
      worker.onerror = () => inPage();
      toWorker = (r) => worker.port.postMessage(r);
      worker.port.start();
    } catch {
      inPage();
    }
  } else {
    inPage();
  }
  setInterval(() => toWorker?.({ kind: "alive" }), 10_000);
  window.addEventListener("online", () => retryNow());
  window.addEventListener("pagehide", () => toWorker?.({ kind: "bye" }));
  window.addEventListener("pageshow", (ev) => {
    if (ev.persisted) follow();
  });
  follow();
}

function inPage(): void {
  const streamer = new Streamer(root.href, receive);
  toWorker = (r) => {
    if (r.kind === "follow") streamer.follow(r.topics);
    else if (r.kind === "bye") streamer.follow([]);
    else if (r.kind === "retry") streamer.retry();
    else if (r.kind === "reconnect") streamer.reconnect();
  };
  follow();
}

export function retryNow(): void {
  toWorker?.({ kind: "retry" });
}

/** Connects anew, with the credentials that the browser has now. */
export function reconnect(): void {
  toWorker?.({ kind: "reconnect" });
}

/** Follows a topic while a component needs it. */
export function watch(topic: string): { view: Signal<Topic<unknown>>; stop: () => void } {
  let f = followed.get(topic);
  if (!f) {
    f = { users: 0, state: { rows: new Map(), leftOut: 0, loaded: false }, view: signal(empty()), dirty: false };
    followed.set(topic, f);
    follow();
  }
  const kept = f;
  clearTimeout(kept.dropping);
  kept.users++;
  return {
    view: kept.view,
    stop() {
      if (--kept.users > 0) return;
      // A page that is left and entered again keeps its content.
      kept.dropping = setTimeout(() => {
        if (kept.users > 0) return;
        followed.delete(topic);
        follow();
      }, 1000);
    },
  };
}

const none = signal(empty());

/** The live content of a topic. "" follows nothing. */
export function useTopic<T>(topic: string): Topic<T> {
  const w = useMemo(() => (topic ? watch(topic) : null), [topic]);
  useEffect(() => () => w?.stop(), [w]);
  return (w?.view ?? none).value as Topic<T>;
}
