/** Debian's Chromium, driven by playwright-core. XABAR_CHROMIUM names another one. */
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const candidates = [process.env.XABAR_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function launch() {
  const executablePath = candidates.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("there is no Chromium: install Debian's package chromium, or name one in XABAR_CHROMIUM");
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    ],
  });
}
