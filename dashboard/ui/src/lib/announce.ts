// Announces live changes to screen readers: the newest message, at most every five seconds.
import { signal } from "@preact/signals";

export const spoken = signal("");

const every = 5000;
let last = 0;
let next = "";
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  next = text;
  if (timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    last = Date.now();
    spoken.value = next;
  }, Math.max(0, last + every - Date.now()));
}
