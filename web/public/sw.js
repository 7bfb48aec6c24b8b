/* Shows notifications while the page is closed. It keeps nothing and serves nothing. */
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let data = {};
  try {
    data = event.data?.json() ?? {};
  } catch {
    // What is not JSON still has to show something: browsers insist.
  }
  event.waitUntil(show(data));
});

async function show(data) {
  const id = data.conversation_id;
  // Whoever looks at the page sees the message itself.
  const pages = await self.clients.matchAll({ type: "window" });
  if (pages.some((page) => page.focused)) return;
  await self.registration.showNotification(data.title ?? "Xabar", {
    body: data.body ?? "",
    tag: data.tag ?? "xabar",
    lang: data.language ?? "",
    icon: "/logo.svg",
    data: { id },
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { id } = event.notification.data ?? {};
  event.waitUntil(open(id ? `/#/c/${encodeURIComponent(id)}` : "/"));
});

async function open(url) {
  const [page] = await self.clients.matchAll({ type: "window" });
  if (!page) return self.clients.openWindow(url);
  // What is not to be focused still goes there.
  await Promise.allSettled([page.focus(), page.navigate(url)]);
}
