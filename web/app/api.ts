/** The few things that go over HTTP. Bodies have snake_case names. */
export interface QuietHours {
  from: string;
  until: string;
  time_zone: string;
}

export interface Me {
  notify: boolean;
  quiet_hours: QuietHours | null;
  /** Of notifications. */
  language?: string;
  /** The key that Web Push subscriptions are made with, where the server has Web Push. */
  web_push_key?: string | null;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(code);
  }
}

export class Api {
  constructor(private readonly token: () => string) {}

  me(): Promise<Me> {
    return this.#ask("GET", "/me");
  }

  updateMe(change: Partial<Pick<Me, "notify" | "quiet_hours" | "language">>): Promise<Me> {
    return this.#ask("PATCH", "/me", change);
  }

  mute(conversationId: string, until: string | null): Promise<void> {
    return this.#ask("PUT", `/conversations/${conversationId}/mute`, { muted_until: until });
  }

  addMembers(conversationId: string, memberIds: string[]): Promise<void> {
    return this.#ask("POST", `/conversations/${conversationId}/members`, { user_ids: memberIds });
  }

  leave(conversationId: string, userId: string): Promise<void> {
    return this.#ask("DELETE", `/conversations/${conversationId}/members/${userId}`);
  }

  addPushSubscription(subscription: PushSubscriptionJSON): Promise<void> {
    return this.#ask("POST", "/me/push-subscriptions", subscription);
  }

  removePushSubscription(endpoint: string): Promise<void> {
    return this.#ask("DELETE", "/me/push-subscriptions", { endpoint });
  }

  async #ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token()}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer: Response;
    try {
      answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch {
      throw new ApiError(0, "offline");
    }
    const json = await answer.json().catch(() => undefined);
    if (!answer.ok) throw new ApiError(answer.status, json?.error?.code ?? "other");
    return json as T;
  }
}
