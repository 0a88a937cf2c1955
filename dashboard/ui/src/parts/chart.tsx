// Charts over time in SVG, each with its numbers as a table for those who do not see it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useMarkKeys } from "../lib/marks";
import { timeZone } from "../lib/prefs";
import { exact, nanos } from "../lib/time";
import { Spoken } from "./data";

export interface Series {
  name: string;
  colour: string; // a class of the style: ok, bad, wait, idle, q1, q2, q3
  values: (number | null)[];
}

interface Props {
  label: string;
  times: number[]; // seconds since 1970, at equal distances
  series: Series[];
  text: (v: number) => string;
  stacked?: boolean; // bars on each other instead of lines
  height?: number;
  choose?: (from: number, to: number) => void; // milliseconds of the step that was clicked
}

const left = 56; // of the plot, for the numbers
const bottom = 30; // for the times
const top = 6;

/** Marks of an axis from 0 to at least most: at most four, at 1, 2 or 5 times a power of ten, or at whole minutes. */
function marks(most: number, times: boolean): number[] {
  const raw = most / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const nice = times && raw > 20e9 ? steps.map((s) => s * 1e9) : [1, 2, 5, 10].map((m) => m * power);
  const step = nice.find((s) => s >= raw) ?? raw;
  const list = [];
  for (let v = 0; v <= most * 1.001; v += step) list.push(v);
  return list;
}

const steps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000];

const two = (n: number) => String(n).padStart(2, "0");

/** The text of a mark of the time axis: the hour, and the date of the first mark and where a day begins. */
function timeMark(at: number, step: number, first: boolean, utc: boolean): [string, string] {
  const d = new Date(at * 1000 - (utc ? 0 : new Date(at * 1000).getTimezoneOffset() * 60_000));
  const day = `${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
  const time = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
  if (step >= 86_400) return [day, ""];
  return [time, first || time === "00:00" ? day : ""];
}

export function Chart({ label, times, series, text, stacked, height = 160, choose }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [pointed, setAt] = useState(-1);
  const begin = times[0] ?? 0;
  const step = (times[1] ?? begin + 60) - begin;
  const openStep = (i: number) => choose?.((times[i] ?? 0) * 1000, ((times[i] ?? 0) + step) * 1000);
  const k = useMarkKeys(times.length, openStep);
  const at = pointed < 0 ? k.at : pointed;
  useLayoutEffect(() => {
    const el = box.current;
    if (!el) return;
    setWidth(el.clientWidth);
    const resize = new ResizeObserver(() => setWidth(el.clientWidth));
    resize.observe(el);
    return () => resize.disconnect();
  }, []);

  const span = Math.max(step, times.length * step);
  const right = Math.max(left + 40, width);
  const x = (t: number) => left + ((t - begin) / span) * (right - left);
  const sums = times.map((_, i) => series.reduce((n, s) => n + (s.values[i] ?? 0), 0));
  const most = Math.max(...(stacked ? sums : series.flatMap((s) => s.values.map((v) => v ?? 0))), 0) || 1;
  const scale = marks(most, text === nanos);
  const roof = Math.max(most, scale.at(-1) ?? 1) * 1.04;
  const y = (v: number) => top + (1 - v / roof) * (height - top - bottom);
  const utc = timeZone.value === "utc";
  const apart = steps.find((s) => (s / span) * (right - left) >= 62) ?? 864_000;
  const zone = utc ? 0 : new Date(begin * 1000).getTimezoneOffset() * 60;
  const ticks: number[] = [];
  for (let t = Math.ceil((begin - zone) / apart) * apart + zone; t < begin + span; t += apart) if (x(t) < right - 14) ticks.push(t);

  const base = new Array<number>(times.length).fill(0);
  const paths = series.map((s) => {
    let d = "";
    let gap = true;
    s.values.forEach((v, i) => {
      const t = times[i] ?? 0;
      if (stacked) {
        const from = base[i] ?? 0;
        const to = from + (v ?? 0);
        base[i] = to;
        if (!v) return;
        const w = Math.max(1, x(t + step) - x(t) - 1);
        d += `M${x(t).toFixed(1)} ${y(from).toFixed(1)}h${w.toFixed(1)}V${y(to).toFixed(1)}h${(-w).toFixed(1)}z`;
      } else if (v === null) {
        gap = true;
      } else {
        d += `${gap ? "M" : "L"}${x(t + step / 2).toFixed(1)} ${y(v).toFixed(1)}`;
        if (gap && (s.values[i + 1] ?? null) === null) d += "m-2 0h4"; // a value alone
        gap = false;
      }
    });
    return d;
  });

  const point = (ev: MouseEvent) => {
    const px = ev.clientX - (box.current?.getBoundingClientRect().left ?? 0);
    const i = Math.floor(((px - left) / (right - left)) * times.length);
    setAt(i >= 0 && i < times.length ? i : -1);
  };
  const chosen = times[at];
  const value = (s: Series, i: number) => (s.values[i] === null || s.values[i] === undefined ? "–" : text(s.values[i] as number));
  const spoken = k.at < 0 ? times.length - 1 : k.at;

  return (
    <figure class="chart" aria-label={label}>
      <div ref={box} class={choose ? "plot chooses" : "plot"} aria-label={label + ", points"} {...k.keys} onMouseMove={point} onMouseLeave={() => setAt(-1)} onClick={() => chosen !== undefined && openStep(at)}>
        <svg width={right} height={height} aria-hidden="true">
          {scale.map((v) => (
            <g key={v}>
              <path class="grid" d={`M${left} ${y(v).toFixed(1)}H${right}`} />
              <text x={left - 6} y={y(v) + 4} class="end">
                {v === 0 ? "0" : text(v)}
              </text>
            </g>
          ))}
          {ticks.map((t, i) => {
            const [time, day] = timeMark(t, apart, i === 0, utc);
            return (
              <g key={t}>
                <path class="grid" d={`M${x(t).toFixed(1)} ${top}V${height - bottom}`} />
                <text x={x(t)} y={height - bottom + 13} class="middle">
                  {time}
                </text>
                {day && (
                  <text x={x(t)} y={height - bottom + 26} class="middle">
                    {day}
                  </text>
                )}
              </g>
            );
          })}
          {series.map((s, i) => (
            <path key={s.name} class={(stacked ? "bars " : "line ") + s.colour} d={paths[i]} />
          ))}
          {chosen !== undefined && <path class="pointed" d={`M${x(chosen + step / 2).toFixed(1)} ${top}V${height - bottom}`} />}
        </svg>
        {chosen !== undefined && (
          <p class={"tip" + (at > times.length / 2 ? " left" : "")} aria-hidden="true">
            <span class="muted">{exact(chosen * 1000)}</span>
            {stacked && !sums[at] && <span>none</span>}
            {series.filter((s) => !stacked || s.values[at] || series.length === 1).map((s) => (
              <span key={s.name}>
                <i class={"swatch " + s.colour} /> {s.name} {value(s, at)}
              </span>
            ))}
          </p>
        )}
        {times.length > 0 && (
          <Spoken keys={k} count={times.length}>
            {`${exact((times[spoken] ?? 0) * 1000)}: ${series.map((s) => `${s.name} ${value(s, spoken)}`).join(", ")}`}
          </Spoken>
        )}
      </div>
      <figcaption>
        {series.map((s) => (
          <span key={s.name} class="legend">
            <i class={"swatch " + s.colour} /> {s.name}
          </span>
        ))}
        <details>
          <summary>Numbers</summary>
          <div class="scroll" tabIndex={0} role="region" aria-label={label + ", numbers"}>
            <table>
              <thead>
                <tr>
                  <th scope="col">From</th>
                  {series.map((s) => (
                    <th scope="col" key={s.name} class="num">
                      {s.name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {times.map((t, i) => (
                  <tr key={t}>
                    <th scope="row">{exact(t * 1000)}</th>
                    {series.map((s) => (
                      <td key={s.name} class="num">
                        {value(s, i)}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      </figcaption>
    </figure>
  );
}
