/**
 * Two people on two nodes that share a PostgreSQL and a Redis; `go test ./web` starts
 * both and says where they are.
 */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch } from "./browser.mjs";
import { Gateway } from "./gateway.mjs";
import { Person } from "./person.js";

let browser: Browser;
let nodes: Gateway[] = [];

beforeAll(async () => {
  const { XABAR_NODES_DATABASE: database, XABAR_NODES_REDIS: redis } = process.env;
  if (!database || !redis) throw new Error("this needs a PostgreSQL and a Redis: run `go test ./web`, or name them in XABAR_NODES_DATABASE and XABAR_NODES_REDIS");
  const shared = ["--database-url", database, "--redis-url", redis, "--jwt-secret", "a secret of 32 bytes for the tests"];
  browser = await launch();
  for (let i = 0; i < 2; i++) nodes.push(await Gateway.start(shared));
});
afterAll(async () => {
  await browser?.close();
  for (const node of nodes) await node.close();
});

it("two people on two nodes: ticks, typing, presence, unread, and a node that dies", async () => {
  const allow = /WebSocket|ERR_CONNECTION|Failed to load resource/;
  const alice = await Person.signIn(browser, nodes[0]!.url, "Alice", { allow });
  const bob = await Person.signIn(browser, nodes[1]!.url, "Bob", { allow });
  await alice.start("Bob");
  await alice.page.locator('[data-presence="online"]').waitFor();
  await alice.write("from the other node");
  await alice.tick("from the other node", "delivered");
  await bob.unread("Alice", 1);
  await bob.open("Alice");
  await alice.tick("from the other node", "read");
  await bob.unread("Alice", 0);
  await bob.box.pressSequentially("typing");
  await alice.page.locator("[data-typing]").waitFor();
  await bob.box.press("Enter");
  await alice.bubble("typing").waitFor();
  await bob.tick("typing", "read");

  await nodes[1]!.end("SIGKILL");
  await bob.connection("offline");
  await alice.write("while your node is down");
  await alice.tick("while your node is down", "sent");
  await bob.write("waiting for my node");
  await nodes[1]!.start();
  await alice.tick("while your node is down", "read");
  await alice.bubble("waiting for my node").waitFor();
  const [a, b] = [await alice.texts(), await bob.texts()];
  expect(a).toEqual(b);
  expect(a.length).toBe(4);
  await alice.close();
  await bob.close();
});
