/**
 * Notifications. While the page is open it shows its own for what comes when nobody
 * looks; where the server has Web Push, a service worker shows them when it is closed.
 */
import { windowHasFocus, type ChatClient } from "../client/src/index.js";
import type { Api } from "./api.js";
import { language, languages } from "./i18n.js";

export type Permission = "on" | "off" | "denied" | "insecure";

export function permission(): Permission {
  if (!isSecureContext || typeof Notification === "undefined") return "insecure";
  return Notification.permission === "granted" ? "on" : Notification.permission === "denied" ? "denied" : "off";
}

/** The same as the server's, so that one replaces the other. */
const tagOf = (conversationId: string) => `conversation:${conversationId}`;

/** Of what was held back in several conversations. */
const allTag = "conversations";

/**
 * Closes what the service worker has shown as soon as it is read, here or on another
 * device. Returns how to stop.
 */
export function closeRead(client: ChatClient): () => void {
  let before = 0;
  return client.events.on("change", () => {
    const unread = client.conversations.filter((c) => c.unread > 0);
    const total = unread.reduce((n, c) => n + c.unread, 0);
    if (total < before) void closeAllBut(new Set(unread.map((c) => tagOf(c.id))));
    before = total;
  });
}

async function closeAllBut(unread: Set<string>): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const worker = await navigator.serviceWorker.getRegistration();
  for (const n of (await worker?.getNotifications()) ?? []) {
    if (n.tag === allTag ? unread.size === 0 : !unread.has(n.tag)) n.close();
  }
}

/** Shows what comes while nobody looks. Returns how to stop. */
export function notifyOf(client: ChatClient, open: (conversationId: string) => void): () => void {
  return client.events.on("message", ({ message, live }) => {
    const c = client.conversation(message.conversationId);
    const muted = !!c?.mutedUntil && new Date(c.mutedUntil) > new Date();
    if (!live || !c || muted || permission() !== "on" || windowHasFocus()) return;
    const name = client.user(message.senderId)?.name ?? c.title;
    const t = languages[language.get()];
    const shown = new Notification(c.kind === "group" ? t.notification.inGroup(name, c.title) : name, {
      body: [...message.text].slice(0, 200).join(""),
      tag: tagOf(c.id), // one for each conversation: the newest
      icon: "/logo.svg",
    });
    shown.onclick = () => {
      window.focus();
      open(c.id);
      shown.close();
    };
  });
}

/** The one policy that the page's Content-Security-Policy allows: its own worker's address. */
const policy = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy("xabar", {
  createScriptURL(url) {
    if (url !== "/sw.js") throw new TypeError("not the service worker");
    return url;
  },
});

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

export const hasPush = (client: ChatClient) =>
  !!client.session?.features.includes("web-push") && "serviceWorker" in navigator && "PushManager" in globalThis;

/** Asks for the permission, and subscribes where the server has Web Push. */
export async function turnOn(client: ChatClient, api: Api): Promise<void> {
  if ((await Notification.requestPermission()) === "granted" && hasPush(client)) await subscribe(api);
}

/**
 * Subscribes again at every start: this browser may have been another user's, and push
 * services change endpoints. Returns how to stop.
 */
export function keepSubscribed(client: ChatClient, api: Api): () => void {
  const resume = () => {
    stop();
    // A browser whose push service is away or switched off still has the page's own notifications.
    if (permission() === "on" && hasPush(client)) subscribe(api).catch(() => {});
  };
  const stop = client.events.on("session", resume);
  return stop;
}

async function subscribe(api: Api): Promise<void> {
  const { web_push_key: key, language: known } = await api.me();
  if (!key) return;
  const url = policy ? policy.createScriptURL("/sw.js") : "/sw.js";
  await navigator.serviceWorker.register(url as string);
  const { pushManager } = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey: key };
  const subscription = await pushManager.subscribe(options).catch(async (e: unknown) => {
    if (!(e instanceof DOMException && e.name === "InvalidStateError")) throw e;
    // One with the key of another server, or of this one's database before.
    await (await pushManager.getSubscription())?.unsubscribe();
    return pushManager.subscribe(options);
  });
  await api.addPushSubscription(subscription.toJSON());
  // What comes from the server speaks as this page does.
  if (known !== language.get()) await api.updateMe({ language: language.get() });
}

/** Ends this browser's subscription, so that a user who signs out is not told any more. */
export async function turnOffPush(api: Api): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const worker = await navigator.serviceWorker.getRegistration();
  const subscription = await worker?.pushManager?.getSubscription();
  if (!subscription) return;
  await api.removePushSubscription(subscription.endpoint);
  await subscription.unsubscribe();
}
