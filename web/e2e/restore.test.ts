/** The embedded database goes back to a backup while a page is open: what it shows, and what it sends. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch } from "./browser.mjs";
import { binary, Gateway, type User } from "./gateway.mjs";
import { eventually, Person } from "./person.js";

let browser: Browser;
let gateway: Gateway;
let alice: Person;
let bob: User;
const backups = mkdtempSync(join(tmpdir(), "xabar-backup-"));

beforeAll(async () => {
  [browser, gateway] = await Promise.all([launch(), Gateway.start([])]);
  bob = await gateway.user("Bob");
  alice = await Person.signIn(browser, gateway.url, "Alice", { allow: /ERR_INTERNET_DISCONNECTED|WebSocket|Failed to load resource|net::/ });
});
afterAll(async () => {
  await alice.close();
  bob.close();
  await browser.close();
  await gateway.close();
  rmSync(backups, { recursive: true, force: true });
});

it("drops what the backup lacks, says so, and sends what waited", async () => {
  const copy = join(backups, "xabar.db");
  const me = (await bob.ask("contacts", {})).contacts.find((c: { user: { name: string } }) => c.user.name === "Alice").user.id;
  const { id } = await bob.direct(me);
  for (const text of ["one", "two"]) await bob.send(id, text);
  await alice.open("Bob");
  await alice.bubble("two").waitFor();
  execFileSync(binary(), ["backup", copy, "--data-dir", gateway.dir]);
  for (const text of ["lost three", "lost four"]) await bob.send(id, text);
  await alice.bubble("lost four").waitFor();

  // She is cut off and writes; meanwhile the gateway goes back and other messages take the numbers.
  await alice.page.context().setOffline(true);
  await alice.connection("offline");
  await alice.page.locator(".composer textarea").fill("written offline");
  await alice.page.keyboard.press("Enter");
  await gateway.end();
  for (const file of readdirSync(gateway.dir)) if (file.startsWith("xabar.db")) renameSync(join(gateway.dir, file), join(backups, `lost-${file}`));
  cpSync(copy, join(gateway.dir, "xabar.db"));
  await gateway.start();
  await eventually(() => expect(bob.socket.connected).toBe(true));
  for (const text of ["three", "four", "five"]) await bob.send(id, text);

  await alice.page.context().setOffline(false);
  await alice.online();
  await eventually(async () => expect(await alice.texts()).toEqual(["one", "two", "three", "four", "five", "written offline"]));
  await alice.page.locator("[data-restored]").waitFor();
  await alice.page.getByRole("button", { name: "OK" }).click();
  await alice.page.locator("[data-restored]").waitFor({ state: "detached" });
  const { messages } = await bob.ask("history", { conversationId: id, afterSeq: 0 });
  expect(messages.map((m: { text: string }) => m.text)).toEqual(["one", "two", "three", "four", "five", "written offline"]);
  // What came after is unread by nobody: she sees it.
  await alice.unread("Bob", 0);
});
