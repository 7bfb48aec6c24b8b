/** The page as a page: languages, widths, keyboard, accessibility, security, size; and the developer view. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launch } from "./browser.mjs";
import { Gateway, type User } from "./gateway.mjs";
import { eventually, Person, type PersonOptions } from "./person.js";

/** All JavaScript that the page loads, compressed, in bytes. */
const budget = 90_000;

let browser: Browser;
let gateway: Gateway;
let people: Person[];
let bob: User;
let carol: User;

beforeAll(async () => {
  [browser, gateway] = await Promise.all([launch(), Gateway.start([])]);
  const alice = await gateway.user("Alice");
  bob = await gateway.user("Bob Barker");
  carol = await gateway.user("Carol");
  const c = await bob.direct(alice.id);
  for (let i = 1; i <= 12; i++) await (i % 3 ? bob : alice).send(c.id, `message ${i}`, i === 8 ? { replyToSeq: 3 } : {});
  const g = await carol.group("A group with a rather long name, so that it must be cut", [alice.id, bob.id]);
  await carol.send(g.id, "Hello everybody");
  alice.close();
  for (let i = 1; i <= 5; i++) await bob.send(c.id, `unread ${i}`);
});
afterAll(async () => {
  bob.close();
  carol.close();
  await browser.close();
  await gateway.close();
});
beforeEach(() => {
  people = [];
});
afterEach(async () => {
  for (const p of people) await p.close();
});

async function alice(options?: PersonOptions): Promise<Person> {
  const p = await Person.signIn(browser, gateway.url, "Alice", options);
  people.push(p);
  return p;
}

async function visitor(options?: PersonOptions): Promise<Person> {
  const p = await Person.open(browser, gateway.url, "nobody", options);
  people.push(p);
  return p;
}

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** No finding of axe-core that is serious or critical. */
async function accessible(page: Page, where: string): Promise<void> {
  await page.evaluate(source);
  const findings = await page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
    return violations
      .filter((v) => v.impact === "serious" || v.impact === "critical")
      .flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.target.join(" ")} ${node.failureSummary}`));
  });
  expect(findings, where).toEqual([]);
}

describe("languages", () => {
  const words = {
    en: { settings: "Settings", search: "Search", unread: "unread messages", beginning: "This is the beginning.", write: "Write a message" },
    ru: { settings: "Настройки", search: "Поиск", unread: "непрочитанных сообщений", beginning: "Это начало беседы.", write: "Напишите сообщение" },
    uz: { settings: "Sozlamalar", search: "Qidirish", unread: "ta oʻqilmagan xabar", beginning: "Bu suhbatning boshi.", write: "Xabar yozing" },
  };

  it("follow the browser, and are chosen in the settings for good", async () => {
    const p = await visitor({ locale: "ru-RU" });
    await p.page.getByLabel("Ваше имя").waitFor();
    await p.page.getByLabel("Ваше имя").fill("Alice");
    await p.page.keyboard.press("Enter");
    await p.online();
    for (const [code, w] of [["uz", words.uz], ["en", words.en], ["ru", words.ru]] as const) {
      const before = Object.values(words).map((x) => x.settings).join("|");
      await p.page.locator(".sidebar").getByRole("button", { name: new RegExp(`^(${before})$`) }).click();
      await p.page.locator("select").first().selectOption(code);
      await p.page.getByRole("heading", { name: w.settings }).waitFor();
      await p.page.keyboard.press("Escape");
      await p.page.getByPlaceholder(w.search).waitFor();
      expect(await p.page.locator("html").getAttribute("lang")).toBe(code);
      await p.row("Bob Barker").getByText(w.unread).waitFor({ state: "attached" });
    }
    await p.page.reload();
    await p.online();
    await p.page.getByPlaceholder(words.ru.search).waitFor();
  });

  it("name days and hours in their own way", async () => {
    for (const [locale, today] of [["en-GB", "Today"], ["ru-RU", "Сегодня"], ["uz-UZ", "Bugun"]] as const) {
      const p = await visitor({ locale });
      await p.page.locator("input").first().fill("Alice");
      await p.page.keyboard.press("Enter");
      await p.online();
      await p.open("Bob Barker");
      await p.page.locator(".day", { hasText: today }).waitFor();
      expect(await p.page.locator("[data-bubble] time").first().textContent()).toMatch(/^\d\d:\d\d$/);
    }
  });
});

describe("widths", () => {
  it("from 320 to 2560 pixels, nothing is cut off", async () => {
    for (const width of [320, 390, 700, 1024, 2560]) {
      const p = await visitor({ viewport: { width, height: 640 } });
      await p.fitsWidth();
      await p.page.getByLabel("Your name").fill("Alice");
      await p.page.keyboard.press("Enter");
      await p.online();
      await p.row("Bob Barker").waitFor();
      await p.fitsWidth();
      await p.open("A group with");
      await p.fitsWidth();
      await p.page.getByRole("button", { name: "Information" }).click();
      await p.page.locator(".people li").nth(2).waitFor();
      await p.fitsWidth();
      await p.page.keyboard.press("Escape");
      if (width < 680) {
        expect(await p.row("Bob Barker").isVisible()).toBe(false);
        await p.page.getByRole("button", { name: "Back to the conversations" }).click();
        await p.row("Bob Barker").waitFor();
        expect(await p.thread.isVisible()).toBe(false);
      }
      await p.page.getByRole("button", { name: "Settings" }).click();
      await p.page.getByRole("dialog").waitFor();
      await p.fitsWidth();
    }
  });
});

describe("the keyboard", () => {
  it("is enough for everything", async () => {
    const p = await visitor();
    const { keyboard } = p.page;
    await keyboard.type("Alice"); // the field has the focus
    await keyboard.press("Enter");
    await p.online();
    await p.row("Bob Barker").waitFor();
    await p.page.getByPlaceholder("Search").focus();
    await keyboard.press("Tab");
    await keyboard.press("ArrowDown");
    await keyboard.press("ArrowUp");
    const title = await p.page.evaluate(() => document.activeElement?.querySelector(".row-title")?.textContent);
    await keyboard.press("Enter");
    await p.page.locator(".thread h2", { hasText: title! }).waitFor();
    await p.open("Bob Barker");
    await eventually(async () => expect(await p.box.evaluate((el) => el === document.activeElement)).toBe(true));
    await keyboard.press("ArrowUp"); // from the empty field to the last message
    await keyboard.press("ArrowUp");
    const label = await p.page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
    expect(label).toMatch(/^Bob Barker, \d\d:\d\d$/);
    await keyboard.press("Enter"); // who has read it
    await p.page.getByRole("heading", { name: "Message", exact: true }).waitFor();
    await keyboard.press("Escape");
    await keyboard.press("r");
    await keyboard.type("by hand");
    await keyboard.press("Enter");
    await p.bubble("by hand").locator("[data-reply-to]").waitFor();
    const button = p.page.getByRole("button", { name: "Settings" });
    await button.focus();
    await keyboard.press("Enter");
    await p.page.getByRole("dialog").waitFor();
    await keyboard.press("Escape");
    await p.page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await button.evaluate((el) => el === document.activeElement)).toBe(true);
  });
});

describe("accessibility", () => {
  for (const colorScheme of ["light", "dark"] as const) {
    it(`has no serious finding, ${colorScheme}`, async () => {
      const p = await visitor({ colorScheme, reducedMotion: "reduce" });
      await accessible(p.page, "signing in");
      await p.page.getByLabel("Your name").fill("Alice");
      await p.page.keyboard.press("Enter");
      await p.online();
      await p.open("Bob Barker");
      await p.page.locator("[data-tick]").first().waitFor();
      await accessible(p.page, "a conversation");
      await p.open("A group with");
      await p.page.locator(".sender").first().waitFor();
      await p.page.getByRole("button", { name: "Information" }).click();
      await p.page.locator(".people li").first().waitFor();
      await accessible(p.page, "information");
      await p.page.keyboard.press("Escape");
      await p.page.locator("[data-bubble]").first().hover();
      await p.page.locator('[data-action="receipts"]').first().click();
      await p.page.locator("[data-receipt]").first().waitFor();
      await accessible(p.page, "receipts");
      await p.page.keyboard.press("Escape");
      await p.page.getByRole("button", { name: "New conversation" }).click();
      await p.page.getByRole("dialog").getByRole("button", { name: "Carol" }).waitFor();
      await accessible(p.page, "contacts");
      await p.page.keyboard.press("Escape");
      await p.page.getByRole("button", { name: "Settings" }).click();
      await p.page.getByRole("dialog").waitFor();
      await accessible(p.page, "settings");
      await p.page.goto(`${gateway.url}/#/dev`);
      await p.page.reload();
      await p.page.locator("[data-event]").nth(5).waitFor();
      await accessible(p.page, "developer view");
    });
  }
});

describe("security", () => {
  it("has a strict policy, and Trusted Types", async () => {
    const p = await visitor();
    const answer = await p.page.request.get(gateway.url);
    const policy = answer.headers()["content-security-policy"]!;
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    const refused = await p.page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b>x</b>";
        return false;
      } catch (e) {
        return e instanceof TypeError;
      }
    });
    expect(refused).toBe(true);
    // The attempt itself is a breach, and was reported as one.
    await eventually(() => expect(p.problems.some((x) => x.startsWith("CSP: require-trusted-types-for"))).toBe(true));
    p.problems.length = 0;
  });

  it("says why a token is refused", async () => {
    const p = await visitor();
    await p.page.getByRole("button", { name: "I have a token" }).click();
    await p.page.getByLabel("Token").fill("not.a.token");
    await p.page.getByRole("button", { name: "Start chatting" }).click();
    await p.page.getByRole("alert").getByText("The token is not valid.").waitFor();
    await p.page.getByLabel("Token").fill(carol.token);
    await p.page.getByRole("button", { name: "Start chatting" }).click();
    await p.online();
    await p.page.getByRole("heading", { name: "Carol" }).waitFor();
  });
});

describe("size", () => {
  it("keeps the budget, and is kept by browsers", async () => {
    const html = await (await fetch(gateway.url)).text();
    const scripts = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+\.js)"/g)].map((m) => m[1]!);
    expect(scripts.length).toBeGreaterThan(0);
    let bytes = 0;
    for (const path of scripts) {
      const answer = await fetch(gateway.url + path, { headers: { "Accept-Encoding": "gzip" } });
      expect(answer.headers.get("content-encoding")).toBe("gzip");
      expect(answer.headers.get("cache-control")).toContain("immutable");
      bytes += Number(answer.headers.get("content-length"));
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(budget);
    const loaded = await visitor();
    const more = await loaded.page.evaluate(() => performance.getEntriesByType("resource").filter((r) => r.name.endsWith(".js")).length);
    expect(more).toBe(scripts.length);
  });

  it("paints without waiting for the socket", async () => {
    const p = await alice({ allow: /WebSocket|ERR_FAILED|Failed to load resource/ });
    await p.page.routeWebSocket(/socket\.io/, () => {}); // accepted, and silent for ever
    await p.page.route(/socket\.io/, () => {});
    await p.page.reload();
    await p.page.getByPlaceholder("Search").waitFor();
    expect(await p.page.locator("[data-connection]").getAttribute("data-connection")).toBe("connecting");
    const paints = await p.page.evaluate(() => performance.getEntriesByName("first-contentful-paint").length);
    expect(paints).toBe(1);
  });
});

describe("the developer view", () => {
  it("shows what goes by, and what a lost answer does", async () => {
    const p = await visitor({ viewport: { width: 1500, height: 800 } });
    await p.page.getByRole("link", { name: /Developer view/ }).click();
    const pane = (i: number) => p.page.locator(`[data-pane="${i}"]`);
    const row = (event: string, kind: string, text: string) =>
      p.page.locator(`[data-event="${event}"][data-kind="${kind}"]`, { hasText: text });
    for (const i of [0, 1]) await pane(i).locator('[data-connection="online"]').waitFor({ state: "attached" });
    await pane(0).getByRole("button", { name: "New conversation" }).first().click();
    await p.page.getByRole("dialog").getByRole("button", { name: /^Bob( online)?$/ }).click();
    await pane(0).getByLabel("Message", { exact: true }).fill("watch this");
    await pane(0).getByLabel("Message", { exact: true }).press("Enter");
    await row("message:send", "answer", "seq 1").waitFor();
    await row("message", "event", "watch this").waitFor();
    await row("message", "ack", "Bob").waitFor();
    await row("message:delivered", "event", "seq 1").waitFor();
    await pane(1).locator("[data-unread]").waitFor(); // not read: the focus is in the other pane
    await pane(1).locator("[data-conversation]").click();
    await pane(1).getByLabel("Message", { exact: true }).click();
    await pane(0).locator('[data-bubble] [data-tick="read"]').waitFor();

    await pane(1).locator('[data-fault="loseNextAnswer"]').click();
    await pane(1).getByLabel("Message", { exact: true }).fill("once");
    await pane(1).getByLabel("Message", { exact: true }).press("Enter");
    await row("message:send", "answer", "timeout").waitFor();
    await row("message:send", "answer", "duplicate").waitFor();
    await pane(1).locator('[data-bubble] [data-tick="delivered"]').waitFor();
    expect(await pane(0).locator("[data-bubble]", { hasText: "once" }).count()).toBe(1);

    await pane(0).locator('[data-fault="offline"]').click();
    await pane(0).locator('[data-connection="offline"]').waitFor({ state: "attached" });
    await pane(1).getByLabel("Message", { exact: true }).fill("are you there?");
    await pane(1).getByLabel("Message", { exact: true }).press("Enter");
    await pane(1).locator("[data-bubble]", { hasText: "are you there?" }).locator('[data-tick="sent"]').waitFor();
    await pane(0).locator('[data-fault="offline"]').click();
    await pane(0).locator("[data-bubble]", { hasText: "are you there?" }).waitFor();
    const open = row("sync", "answer", "1 conversations").last();
    await open.getByRole("button").click();
    await open.locator("pre", { hasText: "are you there?" }).waitFor();
  });
});
