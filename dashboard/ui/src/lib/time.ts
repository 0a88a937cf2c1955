// Times and durations as text. Times of the server are compared with the server's clock.
import { signal } from "@preact/signals";
import { timeForm, timeZone } from "./prefs";

/** Milliseconds that the server's clock is ahead of this machine's. */
export const clockOffset = signal(0);

/** The server's time in milliseconds, updated each second while the page is visible. */
export const now = signal(Date.now());

export function startClock(): void {
  const tick = () => {
    now.value = Date.now() + clockOffset.peek();
  };
  setInterval(() => {
    if (!document.hidden) tick();
  }, 1000);
  document.addEventListener("visibilitychange", tick);
  clockOffset.subscribe(tick);
}

/** Text of a duration in milliseconds with its two largest units: "3 min 20 s". */
export function duration(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < 1) return abs === 0 ? "0 s" : `${Math.round(abs * 1000)} µs`;
  if (abs < 1000) return `${abs < 10 ? abs.toFixed(1) : Math.round(abs)} ms`;
  if (abs < 10_000) return `${(abs / 1000).toFixed(1)} s`;
  const s = Math.round(abs / 1000);
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return s % 60 && m < 10 ? `${m} min ${s % 60} s` : `${m} min`;
  const h = Math.floor(m / 60);
  if (h < 24) return m % 60 ? `${h} h ${m % 60} min` : `${h} h`;
  const d = Math.floor(h / 24);
  return h % 24 && d < 10 ? `${d} d ${h % 24} h` : `${d} d`;
}

export const nanos = (ns: number | undefined): string => (ns === undefined ? "–" : duration(ns / 1e6));

/** Text of a time relative to the server's clock: "3 min ago", "in 5 s". */
export function relative(at: number, from: number): string {
  const ms = from - at;
  if (Math.abs(ms) < 1500) return "now";
  const s = duration(Math.abs(ms) < 60_000 ? Math.round(Math.abs(ms) / 1000) * 1000 : ms).replace(/\.0 s$/, " s");
  return ms > 0 ? `${s} ago` : `in ${s}`;
}

const two = (n: number) => String(n).padStart(2, "0");

/** Exact text of a time, with seconds: "2026-11-28 03:02:41", and " UTC" in UTC. */
export function exact(at: number, zone = timeZone.value, withMillis = false): string {
  const d = new Date(at);
  if (Number.isNaN(at)) return "–";
  const millis = withMillis ? "." + String(d.getUTCMilliseconds()).padStart(3, "0") : "";
  if (zone === "utc") return `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}${millis} UTC`;
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${millis}`;
}

/** Text of a time in the form that the user chose. */
export const timeText = (at: number): string => (timeForm.value === "exact" ? exact(at) : relative(at, now.value));
