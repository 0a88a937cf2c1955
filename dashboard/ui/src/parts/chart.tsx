// Charts over time, drawn by uPlot, each with its numbers as a table for those who do not see it.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { theme, timeZone } from "../lib/prefs";
import { exact } from "../lib/time";

export interface Series {
  name: string;
  colour: string; // a custom property of the style, as --ok
  values: (number | null)[];
}

interface Props {
  label: string;
  times: number[]; // seconds since 1970
  series: Series[];
  text: (v: number) => string;
  stacked?: boolean;
  height?: number;
  choose?: (from: number, to: number) => void; // milliseconds of a chosen point's step
}

/** Sums of the series up to each, for stacked bars. */
function stack(series: Series[], n: number): number[][] {
  const sum = new Array<number>(n).fill(0);
  return series.map((s) => s.values.map((v, i) => (sum[i] = (sum[i] ?? 0) + (v ?? 0))));
}

const two = (n: number) => String(n).padStart(2, "0");

/** The text of a mark of the time axis: the hour, with the date where the day begins. */
function tick(at: number, step: number, before: number | undefined, utc: boolean): string {
  const [d, was] = [at, before ?? 0].map((s) => {
    const t = new Date(s * 1000);
    return utc ? { day: `${two(t.getUTCMonth() + 1)}-${two(t.getUTCDate())}`, time: `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}` } : { day: `${two(t.getMonth() + 1)}-${two(t.getDate())}`, time: `${two(t.getHours())}:${two(t.getMinutes())}` };
  });
  if (step >= 86_400) return d?.day ?? "";
  return before === undefined || d?.day !== was?.day ? `${d?.time}\n${d?.day}` : (d?.time ?? "");
}

export function Chart({ label, times, series, text, stacked, height = 150, choose }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const last = useRef({ series, times, choose });
  last.current = { series, times, choose };
  const dark = theme.value;
  const zone = timeZone.value;
  const shape = series.map((s) => s.name).join();
  const step = times.length > 1 ? (times[1] ?? 0) - (times[0] ?? 0) : 60;

  const data = (): uPlot.AlignedData => {
    const { series: list, times: at } = last.current;
    if (!stacked) return [at, ...list.map((s) => s.values)] as uPlot.AlignedData;
    return [at, ...stack(list, at.length).reverse()] as uPlot.AlignedData;
  };

  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--muted"), font: "11px system-ui, sans-serif", grid, ticks: { show: false } };
    const drawn = stacked ? [...series].reverse() : series;
    const bars = uPlot.paths.bars?.({ size: [0.8, 40], align: 1 });
    const tz = zone === "utc" ? (s: number) => uPlot.tzDate(new Date(s * 1000), "UTC") : (s: number) => new Date(s * 1000);
    plot.current = new uPlot(
      {
        width: Math.max(200, el.clientWidth),
        height,
        tzDate: tz,
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        scales: { y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, space: 64, values: (_u, ticks, _axis, _space, step) => ticks.map((t, i) => tick(t, step, ticks[i - 1], zone === "utc")) },
          { ...axis, size: 62, values: (_u, ticks) => ticks.map((v) => (v === 0 ? "0" : text(v))) },
        ],
        series: [
          {},
          ...drawn.map((s) => ({
            label: s.name,
            stroke: colour(s.colour),
            width: stacked ? 0 : 1.75,
            ...(stacked ? { fill: colour(s.colour), paths: bars, points: { show: false } } : { points: { show: false }, spanGaps: true }),
          })),
        ] as uPlot.Series[],
      },
      data(),
      el,
    );
    const over = el.querySelector<HTMLElement>(".u-over");
    const click = () => {
      const i = plot.current?.cursor.idx;
      const at = i === null || i === undefined ? undefined : last.current.times[i];
      if (at !== undefined) last.current.choose?.(at * 1000, (at + step) * 1000);
    };
    over?.addEventListener("click", click);
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, el.clientWidth), height }));
    resize.observe(el);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, dark, zone, stacked, height, step]);

  useEffect(() => {
    plot.current?.setData(data());
  }, [series, times]);

  return (
    <figure class="chart" aria-label={label}>
      <div ref={box} class={choose ? "plot chooses" : "plot"} aria-hidden="true" />
      <figcaption>
        {series.map((s) => (
          <span key={s.name} class="legend">
            <i class={"swatch " + s.colour.slice(2)} /> {s.name}
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
                        {s.values[i] === null || s.values[i] === undefined ? "–" : text(s.values[i])}
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
