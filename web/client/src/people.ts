import { ChatError } from "./errors.js";
import type { Contact, Presence, User } from "./types.js";
import type { Wire } from "./wire.js";

/** The gateway answers for at most so many users; later ones are left out. */
const maxWatched = 200;

/** Who is who, who is there, and since when not. */
export class People {
  #users = new Map<string, User>();
  #presence = new Map<string, Presence>();
  #watched: readonly string[] = [];
  #contacts: readonly Contact[] | undefined;

  constructor(
    private readonly wire: Wire,
    private readonly changed: (what: "contacts" | "presence") => void,
    private readonly failed: (e: ChatError) => void,
  ) {}

  user(id: string): User | undefined {
    return this.#users.get(id);
  }

  learn(user: User | undefined): void {
    if (user) this.#users.set(user.id, user);
  }

  /** Everybody known, those who were learned last at the end. */
  get users(): User[] {
    return [...this.#users.values()];
  }

  presence(userId: string): Presence | undefined {
    return this.#presence.get(userId);
  }

  /** The contact list as last fetched. */
  get contacts(): readonly Contact[] | undefined {
    return this.#contacts;
  }

  /** Fetches the contact list, all of it. */
  async loadContacts(): Promise<readonly Contact[]> {
    const all: Contact[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.wire.request("contacts", cursor ? { cursor } : {});
      all.push(...page.contacts);
      cursor = page.nextCursor ?? undefined;
    } while (cursor);
    for (const c of all) {
      this.learn(c.user);
      this.#presence.set(c.user.id, { userId: c.user.id, online: c.online, lastSeenAt: c.lastSeenAt });
    }
    this.#contacts = all;
    this.changed("contacts");
    return all;
  }

  /** From now on changes of exactly these users are heard. */
  watch(userIds: Iterable<string>): void {
    const ids = [...new Set(userIds)].slice(0, maxWatched).sort();
    if (ids.join() === this.#watched.join()) return;
    this.#watched = ids;
    this.resume();
  }

  /** The gateway forgets whom a socket watched when it goes. */
  resume(): void {
    if (!this.wire.connected || this.#watched.length === 0) return;
    this.wire.request("presence", { userIds: [...this.#watched] }).then(
      ({ presence }) => {
        for (const p of presence) this.#presence.set(p.userId, p);
        this.changed("presence");
      },
      (e: ChatError) => {
        if (e.code !== "offline") this.failed(e);
      },
    );
  }

  heard(p: Presence): void {
    this.#presence.set(p.userId, p);
    this.#contacts = this.#contacts?.map((c) =>
      c.user.id === p.userId ? { ...c, online: p.online, lastSeenAt: p.lastSeenAt } : c,
    );
    this.changed("presence");
  }

  reset(): void {
    this.#users.clear();
    this.#presence.clear();
    this.#watched = [];
    this.#contacts = undefined;
  }
}
