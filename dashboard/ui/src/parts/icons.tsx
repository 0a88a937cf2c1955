// The icons, drawn on a grid of 16. The document holds them once, as a sprite.
const shapes: Record<string, string> = {
  overview: "M2 9h4V2H2zM2 14h4v-3H2zM10 14h4V7h-4zM10 2v3h4V2z",
  tasks: "M2 4h2M2 8h2M2 12h2M6.5 4H14M6.5 8H14M6.5 12H14",
  jobs: "M3 2.5h3v3H3zM10 2.5h3v3h-3zM6.5 10.5h3v3h-3zM4.5 5.5v2h7v-2M8 7.5v3",
  queues: "M2 4h12M2 8h12M2 12h7",
  workers: "M3 3h10v7H3zM6 13h4M8 10v3",
  schedules: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.5V8l2.5 1.5",
  inbox: "M2 9l2-6h8l2 6v4H2zM2 9h3.5l1 2h3l1-2H14",
  events: "M2 8h3l2-5 2 10 2-5h3",
  types: "M2 3h5v4H2zM9 3h5v4H9zM2 9h5v4H2zM9 9h5v4H9z",
  limits: "M2.5 12a6 6 0 1 1 11 0M8 9l2.5-3",
  orders: "M2 3h2l1.5 7h7L14 5H5M6 13h.5M11.5 13h.5",
  audit: "M4 2h6l3 3v9H4zM6.5 7h4M6.5 9.5h4M6.5 12h2",
  about: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 7.5V11M8 5h.01",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5L14 14",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  external: "M9 3h4v4M13 3L7.5 8.5M11 9.5V13H3V5h3.5",
  check: "M3 8.5l3.5 3.5L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  stop: "M4 4h8v8H4z",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M5 3l8 5-8 5z",
  retry: "M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3",
  hourglass: "M4 2h8M4 14h8M5 2v2.5L8 8l3-3.5V2M5 14v-2.5L8 8l3 3.5V14",
  hand: "M8 2v6M5.5 3.5V9M10.5 3.5V9M13 6v4c0 2.5-2 4-4.5 4S5 13 4 11L2.5 8.5",
  dot: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  undo: "M3 6h6.5a3.5 3.5 0 0 1 0 7H6M3 6l3-3M3 6l3 3",
  warning: "M8 2.5l6 11H2zM8 6.5v3M8 11.5h.01",
  download: "M8 2v8M4.5 7L8 10.5 11.5 7M3 13.5h10",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.5 9h6l.5-9",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.5 3.5l.7.7M11.8 11.8l.7.7M3.5 12.5l.7-.7M11.8 4.2l.7-.7",
  filter: "M2 3h12l-4.5 5.5V13l-3-1.5v-3z",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  link: "M7 9a2.5 2.5 0 0 0 3.5 0l2-2A2.5 2.5 0 0 0 9 3.5l-.7.7M9 7a2.5 2.5 0 0 0-3.5 0l-2 2A2.5 2.5 0 0 0 7 12.5l.7-.7",
};

export type IconName = keyof typeof shapes & string;

export function Sprite() {
  return (
    <svg class="sprite" aria-hidden="true">
      {Object.entries(shapes).map(([name, d]) => (
        <symbol id={"i-" + name} viewBox="0 0 16 16" key={name}>
          <path d={d} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
        </symbol>
      ))}
    </svg>
  );
}

/** An icon without a name for screen readers: a text beside it or a label says the same. */
export function Icon({ name, class: cls }: { name: IconName; class?: string | undefined }) {
  return (
    <svg class={"icon" + (cls ? " " + cls : "")} width="16" height="16" aria-hidden="true" focusable="false">
      <use href={"#i-" + name} />
    </svg>
  );
}
