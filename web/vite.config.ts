import { defineConfig } from "vitest/config";
import { compress, noRemoteCode } from "./vite.plugins.js";

export default defineConfig({
  root: import.meta.dirname,
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    // A strict Content-Security-Policy has no place for what Vite would inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  plugins: [compress(), noRemoteCode()],
  server: {
    // `npm run dev` against a gateway that runs beside it.
    proxy: Object.fromEntries(
      ["/socket.io", "/demo", "/me", "/conversations", "/contacts"].map((path) => [
        path,
        { target: "http://127.0.0.1:3000", ws: path === "/socket.io" },
      ]),
    ),
  },
  test: { include: ["client/test/**/*.test.ts", "app/**/*.test.ts"], restoreMocks: true },
});
