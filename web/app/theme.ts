import { stored } from "./stored.js";

export type Theme = "system" | "light" | "dark";

export const theme = stored<Theme>("xabar:theme", (v) => (v === "light" || v === "dark" ? v : "system"));

/** Says the choice to the style sheet, now and when it changes. */
export function applyTheme(): void {
  const apply = () => {
    document.documentElement.dataset["theme"] = theme.get();
  };
  apply();
  theme.subscribe(apply);
}
