// Settings of this browser.
import { effect, signal, type Signal } from "@preact/signals";

function stored<T extends string>(name: string, otherwise: T, allowed: readonly T[]): Signal<T> {
  let value: string | null = null;
  try {
    value = localStorage.getItem("weaver." + name);
  } catch {
    // Storage is disabled: the setting lasts as long as the page.
  }
  const s = signal<T>(allowed.includes(value as T) ? (value as T) : otherwise);
  let first = true;
  effect(() => {
    const v = s.value;
    if (first) {
      first = false;
      return;
    }
    try {
      localStorage.setItem("weaver." + name, v);
    } catch {
      // As above.
    }
  });
  return s;
}

export const theme = stored("theme", "system", ["system", "light", "dark"]);
export const timeZone = stored("zone", "local", ["local", "utc"]);
export const timeForm = stored("time", "relative", ["relative", "exact"]);
export const shortcuts = stored("keys", "on", ["on", "off"]);

/** A setting of any text, as the chosen columns of a table. */
export function storedText(name: string, otherwise: string): Signal<string> {
  let value: string | null = null;
  try {
    value = localStorage.getItem("weaver." + name);
  } catch {
    // As above.
  }
  const s = signal(value ?? otherwise);
  effect(() => {
    const v = s.value;
    try {
      if (v === otherwise) localStorage.removeItem("weaver." + name);
      else localStorage.setItem("weaver." + name, v);
    } catch {
      // As above.
    }
  });
  return s;
}

effect(() => {
  const html = document.documentElement;
  html.classList.remove("light", "dark");
  if (theme.value !== "system") html.classList.add(theme.value);
});
