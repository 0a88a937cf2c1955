// The palette of Ctrl-K: pages, ids, types, queues, verbs of the page.
import { computed, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../lib/api";
import { listed } from "../lib/keys";
import { go, href, jobHref, taskHref } from "../lib/router";
import { mayOperate } from "../lib/session";
import { pauseTarget, resumeTarget } from "../pages/queues";
import { Dialog } from "./dialog";
import { Icon, type IconName } from "./icons";
import type { Page } from "./shell";

const shown = signal(false);

export function openPalette(): void {
  shown.value = true;
}

interface Entry {
  text: string;
  kind: string;
  icon: IconName;
  run: () => void;
}

const looksLikeID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

const names = signal<{ types: string[]; queues: string[] }>({ types: [], queues: [] });
const loadedNames = signal(0);

async function loadNames(): Promise<void> {
  if (Date.now() - loadedNames.value < 30_000) return;
  loadedNames.value = Date.now();
  const [types, counts] = await Promise.all([
    get<{ items: { task_type: string }[] }>("v1/types").catch(() => ({ items: [] })),
    get<{ queues?: Record<string, unknown>; task_types?: Record<string, unknown> }>("v1/counts").catch(() => ({ queues: {}, task_types: {} })),
  ]);
  names.value = { types: [...new Set([...types.items.map((t) => t.task_type), ...Object.keys(counts.task_types ?? {})])].sort(), queues: Object.keys(counts.queues ?? {}).sort() };
}

export const knownTypes = computed(() => names.value.types);
export const knownQueues = computed(() => names.value.queues);
export { loadNames };

export function Palette({ pages }: { pages: Page[] }) {
  useEffect(() => {
    const key = (ev: KeyboardEvent) => {
      if ((ev.ctrlKey || ev.metaKey) && !ev.altKey && !ev.shiftKey && ev.key.toLowerCase() === "k") {
        ev.preventDefault();
        shown.value = !shown.value;
      }
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, []);
  return shown.value ? <Open pages={pages} /> : null;
}

function Open({ pages }: { pages: Page[] }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [problem, setProblem] = useState("");
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => void loadNames(), []);
  const close = () => (shown.value = false);
  const to = (url: string) => () => {
    close();
    go(url);
  };
  const openID = (id: string) => async () => {
    for (const [path, url] of [["v1/tasks/", taskHref(id)], ["v1/jobs/", jobHref(id)]] as const) {
      try {
        await get(path + id);
        close();
        go(url);
        return;
      } catch {
        // It may be the id of a job.
      }
    }
    setProblem("There is no task and no job with this id, or it was deleted.");
  };
  const want = text.trim().toLowerCase();
  const all: Entry[] = [];
  if (looksLikeID.test(want)) all.push({ text: want.toUpperCase(), kind: "task or job", icon: "search", run: () => void openID(want.toUpperCase())() });
  all.push(...pages.map((p) => ({ text: p.title, kind: "page", icon: p.icon, run: to(href(p.name)) })));
  all.push(...listed.value.filter((s) => s.group === "verb").map((s) => ({ text: s.text, kind: "on this page", icon: "play" as IconName, run: () => (close(), s.run(new KeyboardEvent("keydown"))) })));
  all.push(...names.value.types.map((t) => ({ text: t, kind: "type", icon: "types" as IconName, run: to(href("tasks", { q: "type:" + t })) })));
  all.push(...names.value.queues.map((q) => ({ text: q, kind: "queue", icon: "queues" as IconName, run: to(href("tasks", { q: "queue:" + q })) })));
  if (mayOperate.value && /^(pau|res)/.test(want)) {
    const verb = want.startsWith("p") ? "Pause" : "Resume";
    const each = (what: "queue" | "type", list: string[]) => list.map((n): Entry => ({ text: `${verb} ${n}`, kind: what, icon: verb === "Pause" ? "pause" : "play", run: () => (close(), (verb === "Pause" ? pauseTarget : resumeTarget)(what, n)) }));
    all.push(...each("queue", names.value.queues), ...each("type", names.value.types));
  }
  const found = all.filter((e) => want === "" || looksLikeID.test(want) || (e.text + " " + e.kind).toLowerCase().includes(want)).slice(0, 12);
  if (want !== "" && !looksLikeID.test(want)) found.push({ text: text.trim(), kind: "search tasks", icon: "search", run: to(href("tasks", { q: text.trim() })) });
  const chosen = Math.min(at, found.length - 1);
  const key = (ev: KeyboardEvent) => {
    if (ev.key === "ArrowDown" || ev.key === "ArrowUp") {
      ev.preventDefault();
      setAt((chosen + (ev.key === "ArrowDown" ? 1 : -1) + found.length) % found.length);
    } else if (ev.key === "Enter") {
      ev.preventDefault();
      found[chosen]?.run();
    }
  };
  return (
    <Dialog title="Go to" close={close} class="palette">
      <input
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={"palette-" + chosen}
        aria-label="Search pages, types, queues or an id"
        placeholder="A page, type, queue, id, or a query"
        value={text}
        autoComplete="off"
        spellcheck={false}
        onInput={(ev) => {
          setText(ev.currentTarget.value);
          setAt(0);
          setProblem("");
        }}
        onKeyDown={key}
        ref={(el) => el?.focus()}
      />
      {problem && <p role="alert">{problem}</p>}
      <ul role="listbox" id="palette-list" ref={list} aria-label="Results">
        {found.map((e, i) => (
          <li role="option" id={"palette-" + i} key={e.kind + e.text} aria-selected={i === chosen} onClick={e.run} onMouseMove={() => setAt(i)}>
            <Icon name={e.icon} />
            <span class="palette-text">{e.text}</span>
            <span class="muted">{e.kind}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
