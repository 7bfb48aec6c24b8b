/** Two people write to each other. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch } from "./browser.mjs";
import { Gateway } from "./gateway.mjs";
import { eventually, Person, type PersonOptions } from "./person.js";

let browser: Browser;
let gateway: Gateway;
let people: Person[];
let n = 0;

beforeAll(async () => {
  [browser, gateway] = await Promise.all([launch(), Gateway.start([])]);
});
afterAll(async () => {
  await browser.close();
  await gateway.close();
});
beforeEach(() => {
  people = [];
  n++; // each test has people of its own
});
afterEach(async () => {
  for (const p of people) await p.close();
});

async function person(name: string, options?: PersonOptions): Promise<Person> {
  const p = await Person.signIn(browser, gateway.url, `${name} ${n}`, options);
  people.push(p);
  return p;
}

/** Two people with a conversation open on the first one's page. */
async function pair(options?: PersonOptions): Promise<[Person, Person]> {
  const bob = await person("Bob", options);
  const alice = await person("Alice", options);
  await alice.start(bob.name);
  return [alice, bob];
}

/** How many conversations the page has kept for its next start. */
function kept(p: Person): Promise<number> {
  return p.page.evaluate(() => new Promise<number>((resolve, reject) => {
    const open = indexedDB.open("xabar-snapshots");
    open.onerror = () => reject(open.error);
    open.onsuccess = () => {
      const all = open.result.transaction("snapshots").objectStore("snapshots").getAll();
      all.onsuccess = () => {
        open.result.close();
        resolve(all.result[0]?.conversations.length ?? 0);
      };
    };
  }));
}

describe("a message", () => {
  it("gets one tick, two ticks, blue ticks, and never goes back", async () => {
    const later = await gateway.user(`Bob ${n}`);
    later.close(); // Bob exists, and is not there
    const alice = await person("Alice");
    await alice.start(`Bob ${n}`);
    await alice.page.evaluate(() => {
      const seen: string[] = ((window as unknown as { ticks: string[] }).ticks = []);
      new MutationObserver(() => {
        const now = document.querySelector("[data-bubble] [data-tick]")?.getAttribute("data-tick");
        if (now && now !== seen.at(-1)) seen.push(now);
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    await alice.write("Are you there?");
    await alice.tick("Are you there?", "sent");
    const bob = await person("Bob");
    await alice.tick("Are you there?", "delivered");
    await bob.unread(alice.name, 1);
    expect(await bob.page.title()).toBe("(1) Xabar");
    await bob.open(alice.name);
    await alice.tick("Are you there?", "read");
    await bob.unread(alice.name, 0);
    await eventually(async () => expect(await bob.page.title()).toBe("Xabar"));
    const seen = await alice.page.evaluate(() => (window as unknown as { ticks: string[] }).ticks);
    expect(seen.filter((t) => t !== "waiting" && t !== "sending")).toEqual(["sent", "delivered", "read"]);
  });

  it("is read only when somebody looks", async () => {
    const [alice, bob] = await pair();
    await alice.write("one");
    await bob.open(alice.name);
    await alice.tick("one", "read");
    await bob.look(false);
    await alice.write("two");
    await alice.tick("two", "delivered");
    await bob.bubble("two").waitFor();
    await bob.page.locator("[data-divider]").waitFor();
    await bob.unread(alice.name, 1);
    await alice.tick("two", "delivered");
    await bob.look(true);
    await alice.tick("two", "read");
    await bob.unread(alice.name, 0);
  });

  it("is answered with a reply, and tells who has it and since when", async () => {
    const [alice, bob] = await pair();
    await alice.write("When do we start?");
    await bob.open(alice.name);
    await bob.bubble("When do we start?").hover();
    await bob.bubble("When do we start?").locator("..").locator('[data-action="reply"]').click();
    await bob.write("At ten.");
    await alice.bubble("At ten.").locator("[data-reply-to]", { hasText: "When do we start?" }).waitFor();
    await alice.bubble("When do we start?").hover();
    await alice.bubble("When do we start?").locator("..").locator('[data-action="receipts"]').click();
    const receipt = alice.page.locator('[data-receipt="read"]', { hasText: bob.name });
    await receipt.locator("time").nth(1).waitFor();
    await alice.page.keyboard.press("Escape");
    await receipt.waitFor({ state: "detached" });
  });
});

describe("the list", () => {
  it("keeps the unread count over reloads, and the sender's own at none", async () => {
    const [alice, bob] = await pair();
    for (const text of ["1", "2", "3"]) await alice.write(text);
    await alice.tick("3", "delivered");
    await bob.unread(alice.name, 3);
    for (let i = 0; i < 3; i++) {
      await bob.page.reload();
      await bob.online();
      await bob.unread(alice.name, 3);
    }
    await alice.unread(bob.name, 0);
  });

  it("shows typing and presence", async () => {
    const [alice, bob] = await pair();
    await alice.write("hello");
    await bob.open(alice.name);
    await alice.page.locator('[data-presence="online"]').waitFor();
    await bob.box.pressSequentially("thinking");
    await alice.page.locator("[data-typing]").waitFor();
    await alice.row(bob.name).locator(".typing-text").waitFor();
    await bob.box.press("Enter");
    await alice.bubble("thinking").waitFor();
    await alice.page.locator("[data-typing]").waitFor({ state: "detached" });
    await bob.page.context().close();
    people.splice(people.indexOf(bob), 1);
    expect(bob.problems).toEqual([]);
    await alice.page.locator('[data-presence="offline"]').waitFor();
  });

  it("finds contacts, and makes groups", async () => {
    const carol = await person("Carol");
    const bob = await person("Bob");
    const alice = await person("Alice");
    await alice.page.getByRole("button", { name: "New conversation" }).first().click();
    const dialog = alice.page.getByRole("dialog");
    await dialog.getByRole("button", { name: "New group" }).click();
    await dialog.getByLabel("Name of the group").fill(`Team ${n}`);
    for (const p of [bob, carol]) {
      await dialog.getByLabel("Search contacts").fill(p.name);
      await dialog.locator(".row", { hasText: p.name }).click();
    }
    await dialog.getByRole("button", { name: "Create group" }).click();
    await alice.write("Welcome");
    await bob.unread(`Team ${n}`, 1);
    await bob.open(`Team ${n}`);
    await bob.page.locator(".sender", { hasText: alice.name }).waitFor();
    await alice.tick("Welcome", "delivered"); // Carol has not read it
    await carol.open(`Team ${n}`);
    await alice.tick("Welcome", "read");
    await alice.page.getByRole("button", { name: "Information" }).click();
    for (const p of people) await alice.page.locator(".people", { hasText: p.name }).waitFor();
  });
});

describe("being told", () => {
  it("happens by a notification when nobody looks, with the text as text", async () => {
    // With the permission the page subscribes to Web Push, which Chromium has not in contexts like these.
    const alice = await person("Alice", { permissions: ["notifications"], allow: /does not support the Push API/ });
    const bob = await person("Bob");
    await alice.page.evaluate(() => {
      const shown: unknown[] = ((window as unknown as { shown: unknown[] }).shown = []);
      class Recorded {
        static permission = "granted";
        constructor(title: string, options: NotificationOptions) {
          shown.push([title, options.body]);
        }
      }
      Object.defineProperty(window, "Notification", { value: Recorded });
    });
    const shown = () => alice.page.evaluate(() => (window as unknown as { shown: unknown[] }).shown);
    await bob.start(alice.name);
    await bob.write("seen on the page");
    await alice.unread(bob.name, 1);
    expect(await shown()).toEqual([]);
    await alice.look(false);
    await bob.write("<b>not seen</b>");
    await alice.unread(bob.name, 2);
    expect(await shown()).toEqual([[bob.name, "<b>not seen</b>"]]);
  });

  it("ends with muting, and with leaving a group", async () => {
    const bob = await person("Bob");
    const alice = await person("Alice");
    const carol = await gateway.user(`Carol ${n}`);
    const me = await gateway.user(alice.name);
    const { id } = await carol.group(`Noise ${n}`, [me.id]);
    me.close();
    await carol.send(id, "hello");
    await alice.open(`Noise ${n}`);
    await alice.bubble("hello").waitFor();
    await alice.page.getByRole("button", { name: "Information" }).click();
    await alice.page.getByRole("button", { name: "Mute", exact: true }).click();
    await alice.page.getByRole("button", { name: "Unmute" }).waitFor();
    await alice.start(bob.name);
    await carol.send(id, "louder");
    await alice.row(`Noise ${n}`).locator(".badge.muted").waitFor();
    expect(await alice.page.title()).toBe("Xabar");
    await alice.open(`Noise ${n}`);
    await alice.page.getByRole("button", { name: "Information" }).click();
    await alice.page.getByRole("button", { name: "Leave the group" }).click();
    await alice.page.getByRole("alertdialog").getByRole("button", { name: "Leave the group" }).click();
    await alice.row(`Noise ${n}`).waitFor({ state: "detached" });
    await alice.page.reload();
    await alice.online();
    await alice.row(bob.name).waitFor();
    expect(await alice.row(`Noise ${n}`).count()).toBe(0);
    carol.close();
  });
});

describe("what was typed", () => {
  it("stays over a reload, as the open conversation does", async () => {
    const [alice, bob] = await pair();
    await alice.write("first");
    await alice.tick("first", "delivered");
    await alice.box.fill("not sent yet");
    await alice.page.reload();
    await alice.online();
    await alice.bubble("first").waitFor();
    expect(await alice.box.inputValue()).toBe("not sent yet");
    await bob.unread(alice.name, 1);
  });

  it("waits without a connection and goes out with it: three messages, once, in order", async () => {
    const [alice, bob] = await pair({ allow: /ERR_INTERNET_DISCONNECTED/ });
    await alice.write("before");
    await alice.tick("before", "delivered");
    await alice.page.context().setOffline(true);
    await alice.connection("offline");
    for (const text of ["one", "two", "three"]) await alice.write(text);
    await alice.tick("three", "waiting");
    await alice.page.getByRole("status").filter({ hasText: "3 messages wait" }).waitFor();
    await alice.page.locator(".subtitle", { hasText: "There is no connection." }).waitFor();
    await alice.page.context().setOffline(false);
    await alice.tick("three", "delivered");
    await bob.open(alice.name);
    await bob.bubble("three").waitFor();
    expect(await bob.texts()).toEqual(["before", "one", "two", "three"]);
    expect(await alice.texts()).toEqual(["before", "one", "two", "three"]);
  });

  it("survives a reload while there is no connection", async () => {
    const [alice, bob] = await pair({ allow: /WebSocket|ERR_FAILED|Failed to load resource/ });
    const { page } = alice;
    let cut = false;
    await page.routeWebSocket(/socket\.io/, (ws) => void (cut ? ws.close() : ws.connectToServer()));
    await page.route(/socket\.io/, (route) => (cut ? route.abort() : route.continue()));
    await page.reload(); // routes of sockets hold from the next page on
    await alice.online();
    await eventually(async () => expect(await kept(alice)).toBe(1));
    await page.context().setOffline(true);
    await alice.connection("offline");
    await alice.write("written without a connection");
    await alice.tick("written without a connection", "waiting");
    cut = true;
    await page.context().setOffline(false); // the page may load, its socket may not
    await page.reload();
    await alice.tick("written without a connection", "waiting");
    expect(await page.locator("[data-connection]").getAttribute("data-connection")).toMatch(/connecting|offline/);
    cut = false;
    await alice.tick("written without a connection", "delivered");
    await bob.open(alice.name);
    expect(await bob.texts()).toEqual(["written without a connection"]);
  });

  it("is sent after the gateway was killed and started again, under open pages", async () => {
    const [alice, bob] = await pair({ allow: /WebSocket|ERR_CONNECTION|Failed to load resource/ });
    await alice.write("before");
    await bob.open(alice.name);
    await alice.tick("before", "read");
    await gateway.end("SIGKILL");
    await Promise.all([alice.connection("offline"), bob.connection("offline")]);
    await alice.write("during 1");
    await alice.write("during 2");
    await bob.write("from the other side");
    await alice.tick("during 2", "waiting");
    await gateway.start();
    await alice.tick("during 2", "read");
    await bob.tick("from the other side", "read");
    const [a, b] = [await alice.texts(), await bob.texts()];
    expect(a).toEqual(b);
    expect(a.filter((t) => t.startsWith("during"))).toEqual(["during 1", "during 2"]);
    expect(new Set(a).size).toBe(4);
  });
});
