// The shared worker: one stream for all tabs of a dashboard.
import { maxTopics, Streamer, type Connection, type Message } from "./lib/streamer";

interface Scope {
  onconnect: ((ev: MessageEvent) => void) | null;
}

/** From a page. "alive" comes every few seconds: a page that is gone cannot say so. */
export type Request = { kind: "follow"; topics: string[] } | { kind: "alive" } | { kind: "retry" } | { kind: "reconnect" } | { kind: "bye" };

const goneAfter = 150_000; // timers of hidden tabs run once a minute

interface Tab {
  port: MessagePort;
  topics: string[];
  seen: number;
}

const tabs = new Set<Tab>();

/** One stream has a limited number of topics: very many tabs have more streams. */
interface Part {
  streamer: Streamer;
  topics: string[];
}

const parts: Part[] = [];

function newPart(): Part {
  const streamer = new Streamer(new URL("../", import.meta.url).href, (m) => {
    for (const tab of tabs) {
      if (m.kind === "connection") {
        tab.port.postMessage({ kind: "connection", connection: connection() } satisfies Message);
        continue;
      }
      const updates = m.updates.filter((u) => tab.topics.includes(u.topic));
      if (updates.length > 0) tab.port.postMessage({ kind: "updates", updates } satisfies Message);
    }
  });
  return { streamer, topics: [] };
}

const worstFirst: Connection["mode"][] = ["refused", "lost", "connecting", "polling", "live"];

/** The connection of the streams together: the worst of them. */
function connection(): Connection {
  const all = parts.filter((p) => p.topics.length > 0).map((p) => p.streamer.connection);
  return all.sort((a, b) => worstFirst.indexOf(a.mode) - worstFirst.indexOf(b.mode))[0] ?? { mode: "connecting", status: 0, detail: "", at: 0, offset: 0, retryAt: 0, opened: 0 };
}

function follow(): void {
  const wanted = new Set([...tabs].flatMap((t) => t.topics));
  for (const p of parts) p.topics = p.topics.filter((t) => wanted.has(t));
  for (const topic of wanted) {
    if (parts.some((p) => p.topics.includes(topic))) continue;
    let part = parts.find((p) => p.topics.length < maxTopics);
    if (!part) parts.push((part = newPart()));
    part.topics.push(topic);
  }
  for (const p of parts) p.streamer.follow(p.topics);
}

(globalThis as unknown as Scope).onconnect = (ev) => {
  const port = ev.ports[0];
  if (!port) return;
  const tab: Tab = { port, topics: [], seen: Date.now() };
  tabs.add(tab);
  port.onmessage = (ev: MessageEvent<Request>) => {
    tab.seen = Date.now();
    switch (ev.data.kind) {
      case "follow": {
        const known = tab.topics;
        tab.topics = ev.data.topics;
        if (!tabs.has(tab)) tabs.add(tab); // it was hidden for long
        const updates = tab.topics.filter((t) => !known.includes(t)).flatMap((t) => parts.find((p) => p.topics.includes(t))?.streamer.snapshot(t) ?? []);
        port.postMessage({ kind: "connection", connection: connection() } satisfies Message);
        if (updates.length > 0) port.postMessage({ kind: "updates", updates } satisfies Message);
        follow();
        break;
      }
      case "alive":
        if (!tabs.has(tab)) {
          tabs.add(tab);
          follow();
        }
        break;
      case "retry":
        for (const p of parts) p.streamer.retry();
        break;
      case "reconnect":
        for (const p of parts) p.streamer.reconnect();
        break;
      case "bye":
        tabs.delete(tab);
        follow();
        break;
    }
  };
  port.start();
};

setInterval(() => {
  const old = Date.now() - goneAfter;
  for (const tab of tabs) {
    if (tab.seen < old) {
      tabs.delete(tab);
      follow();
    }
  }
}, 30_000);
