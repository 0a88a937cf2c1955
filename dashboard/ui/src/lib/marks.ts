// Keys of a row of marks, such as a chart or a strip of runs: one tab stop, arrows move between the marks, Enter opens one.
import { useId, useState } from "preact/hooks";

export interface MarkKeys {
  at: number; // the mark that was chosen by a key; -1: none
  id: string; // of the element that names it
  keys: { tabIndex: 0; role: "listbox"; "aria-activedescendant": string; onKeyDown: (ev: KeyboardEvent) => void; onFocus: (ev: FocusEvent) => void; onBlur: () => void };
}

/** The keys of count marks. The focus begins at the last one, which is the newest. */
export function useMarkKeys(count: number, open: (at: number) => void): MarkKeys {
  const base = useId();
  const [chosen, choose] = useState(-1);
  const at = Math.min(chosen, count - 1);
  const spoken = at < 0 ? count - 1 : at;
  const id = `${base}-${spoken}`;
  const onKeyDown = (ev: KeyboardEvent) => {
    if (ev.altKey || ev.ctrlKey || ev.metaKey) return;
    if (ev.key === "Enter") open(spoken);
    else if (ev.key === "ArrowLeft" || ev.key === "ArrowUp") choose(Math.max(0, spoken - 1));
    else if (ev.key === "ArrowRight" || ev.key === "ArrowDown") choose(Math.min(count - 1, spoken + 1));
    else if (ev.key === "Home") choose(0);
    else if (ev.key === "End") choose(count - 1);
    else return;
    ev.preventDefault();
  };
  return { at, id, keys: { tabIndex: 0, role: "listbox", "aria-activedescendant": id, onKeyDown, onFocus: (ev) => (ev.currentTarget as HTMLElement).matches(":focus-visible") && choose(count - 1), onBlur: () => choose(-1) } };
}
