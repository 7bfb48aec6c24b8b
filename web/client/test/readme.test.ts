import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const file = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");

it("the README shows the example that the compiler checks", () => {
  const shown = /```ts\n([^]*?)```/.exec(file("README.md"))?.[1];
  expect(shown).toBe(file("example.ts"));
});

it("the README names every file of the library", () => {
  const named = new Set([...file("README.md").matchAll(/`([a-z-]+\.ts)`/g)].map((m) => m[1]));
  for (const name of readdirSync(new URL("../src", import.meta.url))) {
    if (name !== "index.ts") expect(named).toContain(name);
  }
});
