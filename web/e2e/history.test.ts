/** A long conversation: paging, keeping the place, what is new. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch } from "./browser.mjs";
import { Gateway, type User } from "./gateway.mjs";
import { eventually, Person } from "./person.js";

const total = 500;
const fresh = 90; // unread for Alice

let browser: Browser;
let gateway: Gateway;
let bob: User;
let conversation: string;
let alice: Person;

beforeAll(async () => {
  [browser, gateway] = await Promise.all([launch(), Gateway.start([])]);
  bob = await gateway.user("Bob");
  const reader = await gateway.user("Alice");
  conversation = (await bob.direct(reader.id)).id;
  const sends = [];
  for (let i = 1; i <= total - fresh; i++) sends.push((i % 3 ? bob : reader).send(conversation, text(i)));
  await Promise.all(sends);
  await reader.ask("message:read", { conversationId: conversation, seq: total - fresh });
  const more = [];
  for (let i = total - fresh + 1; i <= total; i++) more.push(bob.send(conversation, text(i)));
  await Promise.all(more);
  reader.close();
  alice = await Person.signIn(browser, gateway.url, "Alice");
});
afterAll(async () => {
  await alice.close();
  bob.close();
  await browser.close();
  await gateway.close();
});

/** Some are long, so that heights differ. */
function text(i: number): string {
  return `${i}: ${"word ".repeat(1 + ((i * 7) % 23))}`.trim();
}

/** The seqs on the page, in order. */
function seqs(): Promise<number[]> {
  return alice.page.locator("[data-seq]").evaluateAll((all) => all.map((el) => Number((el as HTMLElement).dataset["seq"])));
}

const scroller = () => alice.page.locator(".scroller");

describe("500 messages", () => {
  it("open at the line before what is new", async () => {
    await alice.unread("Bob", fresh);
    await alice.open("Bob");
    const line = alice.page.locator("[data-divider]");
    await line.waitFor();
    const [view, at] = [await scroller().boundingBox(), await line.boundingBox()];
    expect(at!.y).toBeGreaterThanOrEqual(view!.y);
    expect(at!.y).toBeLessThan(view!.y + view!.height);
    const next = line.locator("xpath=following-sibling::*[@data-seq][1]");
    expect(await next.getAttribute("data-seq")).toBe(String(total - fresh + 1));
  });

  it("are read as far as they are seen, and no further", async () => {
    const count = () => alice.row("Bob").locator("[data-unread]").getAttribute("data-unread");
    await eventually(async () => expect(Number(await count())).toBeLessThan(fresh));
    expect(Number(await count())).toBeGreaterThan(fresh / 2);
    await alice.page.getByRole("button", { name: "Jump to the newest message" }).click();
    await alice.unread("Bob", 0);
    await alice.page.getByRole("button", { name: "Jump to the newest message" }).waitFor({ state: "detached" });
  });

  it("load upwards without a jump, a hole or a double", async () => {
    const tops = await scroller().evaluate(async (el) => {
      const moves: number[] = [];
      const seqsOf = () => el.querySelectorAll<HTMLElement>("[data-seq]");
      while (seqsOf()[0]!.dataset["seq"] !== "1") {
        el.scrollTop = 40;
        const count = seqsOf().length;
        const mark = [...seqsOf()].find((m) => m.getBoundingClientRect().bottom > el.getBoundingClientRect().top)!;
        const before = mark.getBoundingClientRect().top;
        await new Promise<void>((loaded) => {
          const look = () => (seqsOf().length > count ? loaded() : requestAnimationFrame(look));
          look();
        });
        moves.push(Math.abs(mark.getBoundingClientRect().top - before));
      }
      return moves;
    });
    expect(tops.length).toBeGreaterThan(4);
    expect(Math.max(...tops)).toBeLessThan(2);
    expect(await seqs()).toEqual(Array.from({ length: total }, (_, i) => i + 1));
    await alice.page.getByText("This is the beginning.").waitFor();
  });

  it("keep the place when something new comes, and say so", async () => {
    const first = alice.page.locator('[data-seq="5"]');
    await first.scrollIntoViewIfNeeded();
    const before = await first.boundingBox();
    await bob.send(conversation, "something new");
    const jump = alice.page.getByRole("button", { name: "Jump to the newest message" });
    await jump.locator(".badge", { hasText: "1" }).waitFor();
    expect(Math.abs((await first.boundingBox())!.y - before!.y)).toBeLessThan(2);
    await jump.click();
    await alice.bubble("something new").waitFor();
    await alice.unread("Bob", 0);
  });

  it("lead from a reply to its original", async () => {
    await alice.page.reload();
    await alice.online();
    await bob.send(conversation, "as I said at the start", { replyToSeq: 20 });
    const { messages } = await bob.ask("history", { conversationId: conversation, beforeSeq: 21, limit: 1 });
    const quote = alice.page.locator('[data-reply-to="20"]');
    await quote.locator("..").getByText(messages[0].text).waitFor();
    await quote.click();
    const original = alice.page.locator('[data-seq="20"]');
    await original.waitFor();
    await eventually(async () => {
      const [view, at] = [await scroller().boundingBox(), await original.boundingBox()];
      expect(at!.y).toBeGreaterThan(view!.y - 1);
      expect(at!.y).toBeLessThan(view!.y + view!.height);
    });
  });
});
