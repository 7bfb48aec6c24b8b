/**
 * Somebody in front of the page: a browser context of its own, with the things that
 * people do there. Whatever the console reports as an error, and every breach of
 * the Content-Security-Policy, fails the test that closes the person.
 */
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { patience } from "./gateway.mjs";

export interface PersonOptions extends BrowserContextOptions {
  /** Console errors that the test provokes. */
  allow?: RegExp;
}

export class Person {
  readonly problems: string[] = [];

  private constructor(
    readonly page: Page,
    readonly url: string,
    readonly name: string,
    private readonly allow: RegExp | undefined,
  ) {}

  /** Opens the page, not signed in. */
  static async open(browser: Browser, url: string, name: string, options: PersonOptions = {}): Promise<Person> {
    const { allow, ...more } = options;
    const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1100, height: 700 }, ...more });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    const p = new Person(page, url, name, allow);
    page.on("console", (m) => {
      if (m.type() === "error" || m.type() === "warning") p.problems.push(m.text());
    });
    page.on("pageerror", (e) => p.problems.push(String(e)));
    page.on("dialog", (d) => {
      p.problems.push(`a dialog: ${d.message()}`);
      void d.dismiss();
    });
    await context.exposeFunction("reportBreach", (text: string) => p.problems.push(`CSP: ${text}`));
    await context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (e) => {
        (globalThis as unknown as { reportBreach(s: string): void }).reportBreach(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`);
      });
    });
    await page.goto(url);
    return p;
  }

  static async signIn(browser: Browser, url: string, name: string, options?: PersonOptions): Promise<Person> {
    const p = await Person.open(browser, url, name, options);
    await p.page.getByLabel("Your name").fill(name);
    await p.page.getByRole("button", { name: "Start chatting" }).click();
    await p.online();
    return p;
  }

  async close(): Promise<void> {
    await this.page.context().close();
    expect(this.problems.filter((text) => !this.allow?.test(text))).toEqual([]);
  }

  /** Waits until the connection is in this state. */
  async connection(status: string): Promise<void> {
    await this.page.locator(`[data-connection="${status}"]`).waitFor({ state: "attached" });
  }

  online(): Promise<void> {
    return this.connection("online");
  }

  row(title: string): Locator {
    return this.page.locator("[data-conversation]").filter({ has: this.page.locator(".row-title", { hasText: title }) });
  }

  async open(title: string): Promise<void> {
    await this.row(title).click();
    await this.thread.waitFor();
    await this.page.locator(".thread h2", { hasText: title }).first().waitFor();
  }

  get thread(): Locator {
    return this.page.locator("[data-thread]");
  }

  get box(): Locator {
    return this.page.locator(".composer textarea");
  }

  /** Starts a conversation from the contacts. */
  async start(name: string): Promise<void> {
    await this.page.getByRole("button", { name: "New conversation" }).first().click();
    await this.page.getByRole("dialog").getByRole("button", { name }).click();
    await this.thread.waitFor();
  }

  async write(text: string): Promise<void> {
    await this.box.fill(text);
    await this.box.press("Enter");
  }

  /** The bubble with exactly this text. */
  bubble(text: string): Locator {
    const exact = new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
    return this.page.locator("[data-bubble]").filter({ has: this.page.locator(".text", { hasText: exact }) });
  }

  /** Waits until a message of one's own has this tick. */
  async tick(text: string, progress: string): Promise<void> {
    await this.bubble(text).locator(`[data-tick="${progress}"]`).waitFor();
  }

  /** The texts on screen, in order. */
  texts(): Promise<string[]> {
    return this.page.locator("[data-bubble] .text").allTextContents();
  }

  async unread(title: string, n: number): Promise<void> {
    const badge = this.row(title).locator("[data-unread]");
    if (n === 0) await badge.waitFor({ state: "detached" });
    else await this.row(title).locator(`[data-unread="${n}"]`).waitFor();
  }

  /** Looks away from the window, or back at it. */
  async look(at: boolean): Promise<void> {
    await this.page.evaluate((focused) => {
      Object.defineProperty(document, "hasFocus", { configurable: true, value: () => focused });
      window.dispatchEvent(new Event(focused ? "focus" : "blur"));
    }, at);
  }

  /** Nothing goes beyond the sides of the window. */
  async fitsWidth(): Promise<void> {
    const wide = await this.page.evaluate(() => {
      const limit = document.documentElement.clientWidth;
      const inside = (el: Element) => {
        for (let p: Element | null = el; p; p = p.parentElement) {
          if (p.classList.contains("only-read")) return true;
          const o = getComputedStyle(p);
          if (p !== el && (o.overflowX === "hidden" || o.overflowX === "auto")) return true;
        }
        return false;
      };
      return [...document.querySelectorAll("body *")]
        .filter((el) => el.getBoundingClientRect().right > limit + 1 && !inside(el))
        .map((el) => `${el.tagName}.${el.className}`);
    });
    expect(wide).toEqual([]);
    expect(await this.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)).toBe(true);
  }
}

/** Polls until an assertion holds, up to patience. */
export async function eventually(check: () => Promise<void> | void): Promise<void> {
  for (const deadline = Date.now() + patience; ; ) {
    try {
      return await check();
    } catch (e) {
      if (Date.now() > deadline) throw e;
      await new Promise((again) => setTimeout(again, 25));
    }
  }
}
