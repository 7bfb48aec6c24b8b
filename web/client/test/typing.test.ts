import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TypingState, TypingThrottle } from "../src/typing.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("TypingThrottle", () => {
  it("lets the keys at 0 and 3400 ms through", () => {
    let now = 0;
    const throttle = new TypingThrottle(2000, () => now);
    const passed = [0, 120, 250, 900, 1100, 3400, 3500, 3650].filter((t) => {
      now = t;
      return throttle.allow("c");
    });
    expect(passed).toEqual([0, 3400]);
  });

  it("counts each conversation by itself and survives a clock that steps back", () => {
    let now = 10_000;
    const throttle = new TypingThrottle(2000, () => now);
    expect([throttle.allow("a"), throttle.allow("b"), throttle.allow("a")]).toEqual([true, true, false]);
    now = 0;
    expect(throttle.allow("a")).toBe(true);
  });
});

describe("TypingState", () => {
  it("forgets after the time that the gateway said, counted from the last event", () => {
    const changed = vi.fn();
    const state = new TypingState(changed);
    state.started("c", "bob", 3000);
    vi.advanceTimersByTime(2000);
    state.started("c", "bob", 3000);
    vi.advanceTimersByTime(2999);
    expect(state.in("c")).toEqual(["bob"]);
    vi.advanceTimersByTime(1);
    expect(state.in("c")).toEqual([]);
    expect(changed).toHaveBeenCalledTimes(2);
  });

  it("forgets when a message came", () => {
    const state = new TypingState(() => {});
    state.started("c", "bob", 3000);
    state.started("c", "carol", 3000);
    state.stopped("c", "bob");
    expect(state.in("c")).toEqual(["carol"]);
    state.clear();
    expect(vi.getTimerCount()).toBe(0);
  });
});
