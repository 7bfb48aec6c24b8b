/** Lets one event per interval and conversation through: the first at once, none later to make up. */
export class TypingThrottle {
  #last = new Map<string, number>();
  constructor(
    public intervalMs: number,
    private readonly now: () => number = Date.now,
  ) {}

  allow(conversationId: string): boolean {
    const now = this.now();
    const last = this.#last.get(conversationId);
    // A clock that stepped back must not silence typing.
    if (last !== undefined && now >= last && now - last < this.intervalMs) return false;
    this.#last.set(conversationId, now);
    return true;
  }
}

/** Who is typing where: each for the time that the gateway said, or until a message of theirs comes. */
export class TypingState {
  #timers = new Map<string, Map<string, ReturnType<typeof setTimeout>>>();
  #lists = new Map<string, readonly string[]>();

  constructor(private readonly changed: (conversationId: string) => void) {}

  /** The ids of who is typing. The same array until it changes. */
  in(conversationId: string): readonly string[] {
    return this.#lists.get(conversationId) ?? none;
  }

  started(conversationId: string, userId: string, expiresInMs: number): void {
    let users = this.#timers.get(conversationId);
    if (!users) this.#timers.set(conversationId, (users = new Map()));
    const before = users.get(userId);
    clearTimeout(before);
    users.set(
      userId,
      setTimeout(() => this.stopped(conversationId, userId), expiresInMs),
    );
    if (before === undefined) this.#update(conversationId);
  }

  stopped(conversationId: string, userId: string): void {
    const users = this.#timers.get(conversationId);
    const timer = users?.get(userId);
    if (timer === undefined) return;
    clearTimeout(timer);
    users!.delete(userId);
    this.#update(conversationId);
  }

  clear(): void {
    for (const [conversationId, users] of [...this.#timers]) {
      for (const userId of [...users.keys()]) this.stopped(conversationId, userId);
    }
  }

  #update(conversationId: string): void {
    const users = this.#timers.get(conversationId);
    if (users && users.size > 0) this.#lists.set(conversationId, [...users.keys()]);
    else {
      this.#timers.delete(conversationId);
      this.#lists.delete(conversationId);
    }
    this.changed(conversationId);
  }
}

const none: readonly string[] = [];
