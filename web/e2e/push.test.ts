/**
 * Web Push from end to end, but for two things that headless browsers don't have: a push
 * service of their own (PushManager.subscribe gives the test's instead, and what that
 * decrypts is delivered through the DevTools protocol), and a notification centre to
 * click in (the worker is given the event).
 */
import type { Browser, CDPSession, Worker } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { launch } from "./browser.mjs";
import { Gateway, type User } from "./gateway.mjs";
import { eventually, Person } from "./person.js";
import { PushService } from "./push-service.mjs";

const subject = "mailto:admin@example.org";
/** The shortest that the gateway takes, and what it takes to notice and send. */
const noticed = 30_000;

let browser: Browser;
let gateway: Gateway;
let service: PushService;
let ada: User;
let people: Person[];

beforeAll(async () => {
  service = await PushService.start();
  [browser, gateway] = await Promise.all([
    launch(), Gateway.start(["--vapid-subject", subject, "--push-private", "--notify-wait", "10s"]),
  ]);
  ada = await gateway.user("Ada");
});
afterAll(async () => {
  ada.close();
  await browser.close();
  await gateway.close();
  await service.close();
});
beforeEach(() => {
  people = [];
  service.status = 201;
});
afterEach(async () => {
  for (const p of people) await p.close();
});

/** Somebody in whose browser PushManager answers with the test's push service. */
async function subscriber(name: string): Promise<Person> {
  const person = await Person.open(browser, gateway.url, name);
  people.push(person);
  const { page } = person;
  const context = page.context();
  await context.grantPermissions(["notifications"], { origin: gateway.url });
  await context.addInitScript((subscription) => {
    let current: object | null = null;
    PushManager.prototype.getSubscription = async () => current as PushSubscription | null;
    PushManager.prototype.subscribe = async (options) => {
      (globalThis as unknown as { subscribedWith: unknown }).subscribedWith = options;
      current = { endpoint: subscription.endpoint, toJSON: () => subscription, unsubscribe: async () => !(current = null) };
      return current as PushSubscription;
    };
  }, service.subscription);
  await page.reload();
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "Start chatting" }).click();
  await person.online();
  // The page subscribes by itself, since it may notify.
  await eventually(async () => expect(await subscribedWith(person)).toMatchObject({ userVisibleOnly: true }));
  return person;
}

const subscribedWith = (person: Person) =>
  person.page.evaluate(() => (globalThis as unknown as { subscribedWith?: PushSubscriptionOptionsInit }).subscribedWith);

/** The conversation between Ada and somebody. */
async function withAda(person: Person): Promise<{ id: string }> {
  const user = await gateway.user(person.name);
  user.close();
  return ada.direct(user.id);
}

/** The registration of the page's service worker, in the DevTools protocol's words. */
async function registration(devtools: CDPSession): Promise<string> {
  const found = new Promise<string>((resolve) => {
    devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      for (const r of registrations) if (r.scopeURL.startsWith(gateway.url)) resolve(r.registrationId);
    });
  });
  await devtools.send("ServiceWorker.enable");
  return found;
}

/** Closes somebody's page and waits until the worker knows that it has none. */
async function leave(person: Person, worker: Worker): Promise<void> {
  await person.page.goto("about:blank");
  await eventually(async () => {
    expect(await worker.evaluate(async () => (await (globalThis as any).clients.matchAll()).length)).toBe(0);
  });
}

const shown = (worker: Worker) =>
  worker.evaluate(async () => {
    const scope = globalThis as unknown as { registration: ServiceWorkerRegistration };
    return (await scope.registration.getNotifications()).map((n) => ({ title: n.title, body: n.body, tag: n.tag }));
  });

/** Clicks on the only notification. The worker may not open windows without a real click: where to is noted. */
const click = (worker: Worker) =>
  worker.evaluate(async () => {
    const scope = globalThis as any;
    let opened: string | undefined;
    scope.clients.openWindow = async (url: string) => void (opened = url);
    const [notification] = await scope.registration.getNotifications();
    const event = new scope.NotificationEvent("notificationclick", { notification });
    const done: Promise<unknown>[] = [];
    event.waitUntil = (p: Promise<unknown>) => done.push(p);
    scope.dispatchEvent(event);
    await Promise.all(done);
    return opened;
  });

it("reaches a closed page, replaces what was shown, and opens the conversation", async () => {
  const ben = await subscriber("Ben");
  const context = ben.page.context();
  const key = (await subscribedWith(ben))?.applicationServerKey;
  expect(key).toMatch(/^[\w-]{87}$/);
  const conversation = await withAda(ben);
  const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));

  // Nobody looks: the page goes away, its worker stays.
  const other = await context.newPage();
  const devtools = await context.newCDPSession(other);
  const id = await registration(devtools);
  await leave(ben, worker);

  const hostile = '<img src=x onerror="alert(1)"> \u202egpj.exe';
  await ada.send(conversation.id, hostile);
  const first = await message(0);
  expect(first.key).toBe(key);
  expect(first.subject).toBe(subject);
  expect(first.headers.ttl).toBe("86400");
  expect(JSON.parse(first.payload)).toMatchObject({
    title: "Ada", body: `\u2068${hostile}\u2069`, tag: `conversation:${conversation.id}`, conversation_id: conversation.id, badge: 1,
  });

  const tag = `conversation:${conversation.id}`;
  await deliver(devtools, id, first.payload, worker, { title: "Ada", body: `\u2068${hostile}\u2069`, tag });

  // Two more are one notification, which takes the first one's place.
  await ada.send(conversation.id, "second");
  await ada.send(conversation.id, "third");
  const second = await message(1);
  expect(second.headers.topic).toBe(first.headers.topic);
  const body = JSON.parse(second.payload).body;
  expect(body).toMatch(/^[23] new messages$/);
  await deliver(devtools, id, second.payload, worker, { title: "Ada", body, tag });

  // Where a page is open, a click goes there.
  await ben.page.goto(gateway.url);
  await ben.online();
  await ben.unread("Ada", 3);
  expect(await click(worker)).toBeUndefined();
  await ben.bubble("third").waitFor();
  expect(await shown(worker)).toEqual([]);

  // Without one it opens one, at the conversation.
  await leave(ben, worker);
  await deliver(devtools, id, second.payload, worker, { title: "Ada", body, tag });
  const opened = await click(worker);
  expect(opened).toBe(`/#/c/${conversation.id}`);
  await ben.page.goto(gateway.url + opened);
  await ben.online();
  await ben.bubble("third").waitFor();
}, 4 * noticed);

it("closes what is read on another device", async () => {
  const cem = await subscriber("Cem");
  const context = cem.page.context();
  const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
  const devtools = await context.newCDPSession(await context.newPage());
  const id = await registration(devtools);
  await leave(cem, worker);
  const phone = await gateway.user("Cem");
  const conversation = await ada.direct(phone.id);
  const { seq } = await ada.send(conversation.id, "read on the phone");
  const notification = { title: "Ada", body: "read on the phone", tag: `conversation:${conversation.id}` };
  await deliver(devtools, id, JSON.stringify(notification), worker, notification);
  await cem.page.goto(gateway.url);
  await cem.unread("Ada", 1);
  expect(await shown(worker)).toHaveLength(1);
  await phone.ask("message:read", { conversationId: conversation.id, seq });
  await eventually(async () => expect(await shown(worker)).toEqual([]));
  phone.close();
});

it("forgets a browser whose subscription has ended", async () => {
  const dan = await subscriber("Dan");
  const conversation = await withAda(dan);
  await dan.page.goto("about:blank");
  service.status = 410;
  const before = service.attempts;
  await ada.send(conversation.id, "to nobody");
  await vi.waitUntil(() => service.attempts > before, { timeout: noticed, interval: 100 });
  await eventually(async () => {
    const metrics = await (await fetch(`${gateway.adminURL}/metrics`)).text();
    expect(metrics).toContain('xabar_notification_targets_removed_total{channel="web-push"} 1');
  });
}, 4 * noticed);

/**
 * Hands a push message to the worker until this is shown, and nothing else. The DevTools
 * protocol does not say whether the worker was there to take it; a repeat replaces itself.
 */
async function deliver(devtools: CDPSession, registrationId: string, data: string, worker: Worker, expected: { title: string; body: string; tag: string }) {
  await eventually(async () => {
    await devtools.send("ServiceWorker.deliverPushMessage", { origin: new URL(gateway.url).origin, registrationId, data });
    await expect.poll(() => shown(worker), { timeout: 3000 }).toEqual([expected]);
  });
}

/** The n-th message that the push service took, the first being 0: notifications take their time. */
async function message(n: number) {
  await vi.waitUntil(() => service.messages.length > n || service.errors.length > 0, { timeout: noticed, interval: 100 });
  expect(service.errors).toEqual([]);
  expect(service.messages).toHaveLength(n + 1);
  return service.messages[n]!;
}
