/** Text is text, whatever is in it, and is counted as the gateway counts. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch } from "./browser.mjs";
import { Gateway, type User } from "./gateway.mjs";
import { eventually, Person } from "./person.js";

let browser: Browser;
let gateway: Gateway;
let mallory: User;
let conversation: string;
let alice: Person;

const hostile = [
  `<img src=x onerror="alert(1)">`,
  `<script>alert(2)</script>`,
  `"><svg/onload=alert(3)>`,
  `javascript:alert(4)`,
  `<a href="javascript:alert(5)">click</a>`,
  `{{constructor.constructor('alert(6)')()}}`,
  `</textarea><iframe srcdoc="<script>parent.alert(7)</script>">`,
  `&lt;b&gt;not bold&lt;/b&gt; &amp;`,
  `<style>*{display:none}</style>`,
];

beforeAll(async () => {
  [browser, gateway] = await Promise.all([launch(), Gateway.start([])]);
  mallory = await gateway.user(`<img src=x onerror="alert('name')">`);
  alice = await Person.signIn(browser, gateway.url, "Alice");
  const me = await gateway.user("Alice");
  conversation = (await mallory.direct(me.id)).id;
  me.close();
});
afterAll(async () => {
  await alice.close(); // no dialog, no breach of the policy, nothing in the console
  mallory.close();
  await browser.close();
  await gateway.close();
});

describe("text", () => {
  it("is shown as it was written, in the list, in bubbles, in quotes, in receipts", async () => {
    let last = { seq: 0 };
    for (const text of hostile) last = await mallory.send(conversation, text, last.seq ? { replyToSeq: last.seq } : {});
    await alice.unread("<img src=x", hostile.length);
    await alice.open("<img src=x");
    await alice.bubble(hostile.at(-1)!).waitFor();
    expect(await alice.texts()).toEqual(hostile);
    await alice.write(hostile[0]!);
    await alice.tick(hostile[0]!, "delivered");
    const own = alice.page.locator(".mine [data-bubble]").first();
    await own.hover();
    await own.locator("..").locator('[data-action="receipts"]').click();
    await alice.page.locator(".excerpt").filter({ hasText: "onerror" }).waitFor();
    await alice.page.keyboard.press("Escape");
    const foreign = await alice.page.evaluate(() => document.querySelectorAll("#app :is(script, iframe, style, b, img:not([src='/logo.svg'])), [onerror], [onload]").length);
    expect(foreign).toBe(0);
    expect(await alice.page.locator(".text a").count()).toBe(0);
  });

  it("keeps its own direction, and does not turn what stands around it", async () => {
    const tricky = "invoice\u202efdp.exe and on";
    await mallory.send(conversation, tricky);
    await mallory.send(conversation, "שלום עולם, this begins from the right");
    await alice.bubble(tricky).waitFor();
    const rtl = alice.page.locator(".text", { hasText: "this begins from the right" });
    expect(await rtl.evaluate((el) => getComputedStyle(el).unicodeBidi)).toBe("plaintext");
    expect(await rtl.evaluate((el) => getComputedStyle(el).direction)).toBe("rtl");
    const time = alice.bubble(tricky).locator("time");
    expect(await time.textContent()).toMatch(/^\d\d:\d\d$/);
  });

  it("breaks long words instead of the page", async () => {
    await mallory.send(conversation, "w".repeat(1500));
    await alice.bubble("w".repeat(1500)).waitFor();
    await alice.fitsWidth();
  });

  it("links web addresses and nothing else, telling the other side nothing", async () => {
    await mallory.send(conversation, "see https://example.org/a?b=c#d. and https://user:pw@evil.example or ftp://x.example");
    const link = alice.page.locator(".text a");
    await link.waitFor();
    expect(await link.count()).toBe(1);
    expect(await link.getAttribute("href")).toBe("https://example.org/a?b=c#d");
    expect(await link.getAttribute("rel")).toBe("noopener noreferrer nofollow");
  });
});

describe("the limit", () => {
  it("counts code points: 2,000 emoji go, 2,001 don't", async () => {
    const send = alice.page.getByRole("button", { name: "Send", exact: true });
    await alice.box.fill("😀".repeat(1799));
    expect(await alice.page.locator("[data-counter]").count()).toBe(0);
    await alice.box.fill("😀".repeat(2001));
    await alice.page.locator('[data-counter="-1"]').getByText("1 character too many").waitFor();
    expect(await send.isDisabled()).toBe(true);
    await alice.box.press("Enter");
    expect(await alice.box.inputValue()).toBe("😀".repeat(2001));
    await alice.box.fill("😀".repeat(2000));
    await alice.page.locator('[data-counter="0"]').waitFor();
    await alice.box.press("Enter");
    await alice.tick("😀".repeat(2000), "delivered");
    const { messages } = await mallory.ask("history", { conversationId: conversation, limit: 1 });
    expect([...messages[0].text].length).toBe(2000);
  });

  it("does not send white space, and shows why a send failed", async () => {
    await alice.box.fill(" \n\t ");
    expect(await alice.page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
    await alice.box.fill("");
    // A page with other limits than the gateway's: what it refuses ends as failed, with the reason.
    const before = await alice.texts();
    await alice.page.evaluate(() => {
      const original = JSON.stringify;
      JSON.stringify = ((value: unknown, ...rest: []) => {
        const text = original(value, ...rest);
        return text?.includes("make this too long") ? text.replace("make this too long", "x".repeat(2001)) : text;
      }) as typeof JSON.stringify;
    });
    await alice.write("make this too long");
    const failed = alice.bubble("make this too long");
    await failed.getByText("The text is too long.").waitFor();
    await failed.locator('[data-tick="failed"]').waitFor();
    await failed.getByRole("button", { name: "Discard" }).click();
    await eventually(async () => expect(await alice.texts()).toEqual(before));
  });
});
