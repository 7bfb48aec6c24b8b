/** What was typed and not sent, for each user and conversation, over reloads. */
import { safely } from "./stored.js";

export interface Draft {
  text: string;
  replyToSeq?: number;
}

const key = (userId: string, conversationId: string) => `xabar:draft:${userId}:${conversationId}`;

class Drafts {
  #known = new Map<string, Draft | undefined>();

  get(userId: string | undefined, conversationId: string): Draft | undefined {
    if (!userId) return undefined;
    const k = key(userId, conversationId);
    if (!this.#known.has(k)) {
      const text = safely(() => localStorage.getItem(k));
      this.#known.set(k, text === null ? undefined : (safely(() => JSON.parse(text) as Draft) ?? undefined));
    }
    return this.#known.get(k);
  }

  set(userId: string | undefined, conversationId: string, draft: Draft): void {
    if (!userId) return;
    const k = key(userId, conversationId);
    const empty = draft.text === "" && draft.replyToSeq === undefined;
    this.#known.set(k, empty ? undefined : draft);
    safely(() => (empty ? localStorage.removeItem(k) : localStorage.setItem(k, JSON.stringify(draft))));
  }
}

export const drafts = new Drafts();
