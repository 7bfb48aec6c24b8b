import { memo } from "./memo.js";

const colours = 8;

/** Initials on a colour that follows from the id, with a dot for presence. */
export const Avatar = memo(({ id, name, online, small }: { id: string; name: string; online?: boolean; small?: boolean }) => {
  let hash = 0;
  for (const c of id) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  return (
    <span class={`avatar tint-${hash % colours}${small ? " small" : ""}`} aria-hidden="true">
      {initials(name)}
      {online && <span class="dot" />}
    </span>
  );
});

function initials(name: string): string {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const first = (word: string | undefined) => (word ? [...word][0]! : "");
  return (first(words[0]) + (words.length > 1 ? first(words[words.length - 1]) : "")).toLocaleUpperCase();
}
