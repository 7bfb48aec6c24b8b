/**
 * Makes the pictures of the README from the running page: npm run build, then
 * npm run screenshots. They go to docs/images, or to the folder that is named.
 */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { launch } from "../e2e/browser.mjs";
import { Gateway } from "../e2e/gateway.mjs";

const out = resolve(process.argv[2] ?? resolve(import.meta.dirname, "../../docs/images"));
mkdirSync(out, { recursive: true });

const gateway = await Gateway.start();
const browser = await launch();
const users = {};
try {
  await seed();
  await chat("chat-light", { width: 1280, height: 800 }, "light");
  await chat("chat-dark", { width: 1280, height: 800 }, "dark");
  await phone();
  await developer();
} finally {
  await browser.close();
  for (const u of Object.values(users)) u.close();
  await gateway.close();
}

/** A small world with something to see in every corner. */
async function seed() {
  for (const name of ["Dilnoza Karimova", "Timur Aliev", "Ada Lovelace", "Jasur", "Мария Петрова", "Grace Hopper"]) {
    users[name] = await gateway.user(name);
  }
  const { "Dilnoza Karimova": me, "Timur Aliev": timur, "Ada Lovelace": ada, Jasur: jasur, "Мария Петрова": maria, "Grace Hopper": grace } = users;
  const ids = (...list) => list.map((u) => u.id);

  const c1 = await grace.direct(me.id);
  await grace.send(c1.id, "The moth is in the logbook now.");
  const c2 = await maria.direct(me.id);
  await maria.send(c2.id, "Привет! Отправила черновик договора.");
  await me.ask("message:read", { conversationId: c2.id, seq: 1 });
  await me.send(c2.id, "Спасибо, посмотрю сегодня вечером");
  const group = await timur.group("Launch team", ids(me, ada, jasur));
  await timur.send(group.id, "Release notes are ready for a last look.");
  await ada.send(group.id, "I will read them tonight 👍");
  await jasur.send(group.id, "Zoʻr! Ertaga soat 10 da chiqaramizmi?");

  const c = await timur.direct(me.id);
  const texts = [
    [timur, "Did the gateway survive the restart?"],
    [me, "It did. I pulled the plug in the middle of sending."],
    [me, "Three messages were on their way: all there, once, in order."],
    [timur, "That is the whole point 🙂"],
    [timur, "Here is the write-up: https://xabar.example/notes/restart"],
    [me, "Reading. One question about the second paragraph, though:"],
    [me, "why does the clock of the other node not matter?"],
  ];
  let last;
  for (const [who, text] of texts) last = await who.send(c.id, text);
  await timur.send(c.id, "Because order is seq, never a clock. The database numbers each conversation, and everybody shows them by that number.", { replyToSeq: last.seq });
  await me.send(c.id, "مرحبا، שלום, salom: every script reads in its own direction.");
  await me.send(c.id, "See you at ten tomorrow ☕️");
  await timur.ask("message:read", { conversationId: c.id, seq: last.seq + 2 });
  await timur.ask("message:delivered", { conversationId: c.id, seq: last.seq + 3 });
  me.close();
}

async function open(viewport, colorScheme, more = {}) {
  const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor: 1.5, locale: "en-GB", ...more });
  const page = await context.newPage();
  await page.goto(gateway.url);
  return page;
}

async function signIn(page, name) {
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "Start chatting" }).click();
  await page.locator('[data-connection="online"]').waitFor({ state: "attached" });
}

async function chat(name, viewport, scheme) {
  const page = await open(viewport, scheme);
  if (scheme === "light") await page.screenshot({ path: `${out}/sign-in.png` });
  await signIn(page, "Dilnoza Karimova");
  await page.locator(".row", { hasText: "Timur Aliev" }).first().click();
  await page.locator("[data-bubble]").last().waitFor();
  await page.locator('[data-tick="read"]').first().waitFor();
  await page.screenshot({ path: `${out}/${name}.png` });
  await page.context().close();
}

async function phone() {
  const page = await open({ width: 390, height: 780 }, "light", { isMobile: true, hasTouch: true });
  await signIn(page, "Dilnoza Karimova");
  await page.locator("[data-unread]").first().waitFor();
  await page.screenshot({ path: `${out}/phone-list.png` });
  await page.locator(".row", { hasText: "Launch team" }).click();
  await page.locator("[data-bubble]").last().waitFor();
  await page.screenshot({ path: `${out}/phone-chat.png` });
  await page.context().close();
}

async function developer() {
  const page = await open({ width: 1600, height: 860 }, "light");
  await page.goto(`${gateway.url}/#/dev`);
  const pane = (i) => page.locator(`[data-pane="${i}"]`);
  for (const i of [0, 1]) await pane(i).locator('[data-connection="online"]').waitFor({ state: "attached" });
  await pane(0).getByRole("button", { name: "New conversation" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Bob" }).click();
  await pane(0).getByLabel("Message", { exact: true }).fill("Hello Bob, do you see the events?");
  await page.keyboard.press("Enter");
  await pane(1).locator(".row", { hasText: "Alice" }).click();
  await pane(1).getByLabel("Message", { exact: true }).click();
  await pane(0).locator('[data-bubble] [data-tick="read"]').waitFor();
  await page.locator('[data-fault="loseNextAnswer"]').nth(1).click();
  await pane(1).getByLabel("Message", { exact: true }).fill("I do. And this answer gets lost on purpose.");
  await page.keyboard.press("Enter");
  await page.locator(".summary", { hasText: "duplicate" }).first().waitFor();
  await pane(1).locator('[data-bubble] [data-tick]').first().waitFor();
  await page.screenshot({ path: `${out}/developer.png` });
  await page.context().close();
}
