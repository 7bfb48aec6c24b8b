/**
 * Notifications. While the page is open it shows its own for what comes when nobody
 * looks; where the server has Web Push, a service worker shows them when it is closed.
 */
import { windowHasFocus, type ChatClient } from "../client/src/index.js";
import type { Api, Me } from "./api.js";
import { language, languages } from "./i18n.js";

export type Permission = "on" | "off" | "denied" | "insecure";

export function permission(): Permission {
  if (!isSecureContext || typeof Notification === "undefined") return "insecure";
  return Notification.permission === "granted" ? "on" : Notification.permission === "denied" ? "denied" : "off";
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
      tag: c.id, // one for each conversation: the newest
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
export async function turnOn(client: ChatClient, api: Api, me: Me | undefined): Promise<Permission> {
  if ((await Notification.requestPermission()) !== "granted") return permission();
  const key = me?.web_push_key;
  if (hasPush(client) && key) {
    const url = policy ? policy.createScriptURL("/sw.js") : "/sw.js";
    await navigator.serviceWorker.register(url as string);
    const worker = await navigator.serviceWorker.ready;
    const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    await api.addPushSubscription(subscription.toJSON());
  }
  return permission();
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
