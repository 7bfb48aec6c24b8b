/** Line icons, drawn here: 24 units, currentColor. Always decoration; labels stand beside them. */
const paths = {
  back: "M15 5l-7 7 7 7",
  send: "M4 12l16-8-6 16-3-7z",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  plus: "M12 5v14M5 12h14",
  gear: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  close: "M6 6l12 12M18 6L6 18",
  reply: "M10 6l-6 6 6 6M4 12h9a7 7 0 0 1 7 7",
  info: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 11v5M12 8v.01",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  down: "M6 10l6 6 6-6",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  alert: "M12 4l9 16H3zM12 10v4M12 17v.01",
  check: "M5 13l4 4L19 7",
  checks: "M1.500 12.500l4.500 4.500 8.500-10M11 16l1.200 1.200L22 7",
  group: "M9 5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM3 19c0-3 3-5 6-5s6 2 6 5M16 5.500a3.500 3.500 0 0 1 0 6.500M18 14.500c2 .7 3 2.500 3 4.500",
  muted: "M5 9v6h4l5 4V5L9 9zM17 10l4 4M21 10l-4 4",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  retry: "M5 12a7 7 0 1 1 2 5M5 20v-4h4",
  trash: "M5 7h14M10 4h4M7 7l1 13h8l1-13",
  exit: "M14 4H5v16h9M10 12h11M17 8l4 4-4 4",
  code: "M8 7l-5 5 5 5M16 7l5 5-5 5",
  wifi: "M4 10a12 12 0 0 1 16 0M7 14a7 7 0 0 1 10 0M12 18v.01",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, class: extra = "" }: { name: IconName; class?: string }) {
  return (
    <svg class={`icon ${extra}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
