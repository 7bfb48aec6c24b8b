import { ChatClient, tickOf, VisibleMessages } from "./src/index.js";

const chat = new ChatClient({
  url: "https://chat.example.org", // leave it out where the page comes from the gateway
  userId: "0190c2a0-0000-7000-8000-000000000001", // whose token it is: shows what was kept before there is a connection
  token: async () => (await fetch("/my-app/chat-token")).text(), // asked at every connect
});

chat.events.on("change", () => {
  for (const c of chat.conversations) console.log(c.title, c.unread, chat.typing(c.id).length > 0 ? "typing…" : c.lastMessage?.text);
});
chat.events.on("message", ({ message }) => console.log("new:", message.text));
chat.events.on("connection", (state) => console.log(state.status)); // connecting, syncing, online, offline, refused

await chat.start();

/** Shows a conversation in an element that scrolls. */
export function show(conversationId: string, list: HTMLElement): void {
  const c = chat.conversation(conversationId)!;
  for (const m of chat.messages(conversationId)) {
    const row = document.createElement("p");
    row.dataset["seq"] = String(m.seq);
    row.textContent = m.senderId === chat.userId ? `${m.text} (${tickOf(m.seq, c)})` : m.text; // sent, delivered, read
    list.append(row);
  }
  for (const waiting of chat.outbox(conversationId)) list.append(`${waiting.text} (${waiting.state})`);
  const seen = new VisibleMessages({ root: list, seen: (seq) => chat.markRead(conversationId, seq) });
  seen.observe(list.querySelectorAll("[data-seq]"));
}

/** Stored when it resolves; sent as soon as there is a connection, once, in order. */
export const send = (conversationId: string, text: string) => chat.send({ conversationId, text });
