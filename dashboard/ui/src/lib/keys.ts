// Single-key shortcuts. They can be switched off (WCAG 2.1.4), and do nothing while a text is edited.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { shortcuts } from "./prefs";

export interface Shortcut {
  keys: string; // "j", "g t", "/", "Enter"
  text: string; // the entry in the list of shortcuts
  run: (ev: KeyboardEvent) => void;
  group?: string;
}

const active: Shortcut[][] = [];

/** The shortcuts of the present page, the innermost last. */
export const listed = signal<Shortcut[]>([]);

function publish(): void {
  listed.value = active.flat();
}

let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

function editing(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  return !!el && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && (el as HTMLInputElement).type !== "checkbox");
}

export function startKeys(): void {
  document.addEventListener("keydown", (ev) => {
    if (ev.defaultPrevented || ev.ctrlKey || ev.metaKey || ev.altKey || shortcuts.peek() === "off" || editing(ev.target)) return;
    const dialog = document.querySelector("dialog[open]");
    const typed = prefix ? `${prefix} ${ev.key}` : ev.key;
    clearTimeout(prefixTimer);
    prefix = "";
    // Enter and the space bar belong to the control with the focus.
    if ((ev.key === "Enter" || ev.key === " ") && (ev.target as HTMLElement | null)?.closest("a, button, summary, [role=tab]")) return;
    for (let i = active.length - 1; i >= 0; i--) {
      for (const s of active[i] ?? []) {
        if (dialog && s.group !== "dialog") continue;
        if (s.keys === typed) {
          ev.preventDefault();
          s.run(ev);
          return;
        }
        if (s.keys.startsWith(typed + " ")) prefix = typed;
      }
    }
    if (prefix) prefixTimer = setTimeout(() => (prefix = ""), 1500);
  });
}

/** Shortcuts that hold while the component is shown. */
export function useKeys(list: Shortcut[]): void {
  const latest = useRef(list);
  latest.current = list;
  const names = list.map((s) => s.keys + s.text).join();
  // As soon as the component is in the page, so that no key is lost.
  useLayoutEffect(() => {
    const mine = latest.current.map((s, i) => ({ ...s, run: (ev: KeyboardEvent) => latest.current[i]?.run(ev) }));
    active.push(mine);
    publish();
    return () => {
      active.splice(active.indexOf(mine), 1);
      publish();
    };
  }, [names]);
}
