// Numbers and states as text.

/** A count of the API: exact up to a limit, "10,000+" beyond it. */
export interface Count {
  n: number;
  more?: boolean;
}

const grouped = new Intl.NumberFormat("en-US");

export const number = (n: number): string => grouped.format(n);
export const count = (c: Count | undefined): string => (c ? number(c.n) + (c.more ? "+" : "") : "0");
export const plural = (n: number, one: string, many = one + "s"): string => `${number(n)} ${n === 1 ? one : many}`;

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 * 1024) return `${(n / 1024).toFixed(n < 10_240 ? 1 : 0)} KiB`;
  return `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

/** The first line of a text, cut at a length. */
export function firstLine(s: string, most = 160): string {
  const line = s.split("\n", 1)[0] ?? "";
  return line.length > most || line.length < s.trimEnd().length ? line.slice(0, most) + "…" : line;
}

/** Text with its invisible and direction-changing characters made visible. */
export function visible(s: string): string {
  return s.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
