// The shared worker: one stream for all tabs of a dashboard.
import { Streamer, type Message } from "./lib/streamer";

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

const streamer = new Streamer(new URL("../", import.meta.url).href, (m) => {
  for (const tab of tabs) {
    if (m.kind !== "updates") {
      tab.port.postMessage(m);
      continue;
    }
    const updates = m.updates.filter((u) => tab.topics.includes(u.topic));
    if (updates.length > 0) tab.port.postMessage({ kind: "updates", updates } satisfies Message);
  }
});

function follow(): void {
  streamer.follow([...tabs].flatMap((t) => t.topics));
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
        const updates = tab.topics.filter((t) => !known.includes(t)).flatMap((t) => streamer.snapshot(t) ?? []);
        port.postMessage({ kind: "connection", connection: streamer.connection } satisfies Message);
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
        streamer.retry();
        break;
      case "reconnect":
        streamer.reconnect();
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
